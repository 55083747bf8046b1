package browsertest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// TestLargeCluster shows the views of a cluster with as many futures as FUTURA_LARGE says, a
// tenth as many lanes, and 1,000 workers, and tells how long each took. Each view shows
// its first page: none of them grows with the cluster.
func TestLargeCluster(t *testing.T) {
	total, _ := strconv.Atoi(os.Getenv("FUTURA_LARGE"))
	if total == 0 {
		t.Skip("FUTURA_LARGE is unset: set it to a number of futures, such as 1000000")
	}
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{
		Config: layout.Config{Heartbeat: 10 * time.Minute, DeadAfter: time.Hour},
	})
	require.NoError(t, err)
	s := serveSite(t, client, nil)
	t.Cleanup(func() { require.NoError(t, client.Close(ctx)); require.NoError(t, db.Close()) })
	fillLarge(t, client, total)
	p := s.newTab()
	p.login(secrets[stack.Admin])
	p.do("count", chromedp.Evaluate(`window.shows = (place, text) => new Promise((done) => {
		const from = performance.now();
		const look = () => {
			const body = document.querySelector("main");
			if (!body.querySelector("[aria-busy]") && body.textContent.includes(text)) done(performance.now() - from);
			else setTimeout(look, 2);
		};
		location.hash = place;
		setTimeout(look, 2);
	})`, nil))
	for _, view := range []struct{ place, text string }{
		{"", "waiting"}, {"futures", "Submitted"}, {"futures?state=ready&queue=q7", "q7"}, {"futures?state=failed", "No future"},
		{"queues", "Oldest"}, {"functions", "Workers"}, {"lanes", "k1"}, {"lanes/k1", "key-"}, {"workers", "The first 200"}, {"limits", "Used"},
	} {
		for _, from := range []string{"schedules", "jobs", "schedules"} {
			p.open(from)
			p.holds("!document.querySelector('[aria-busy]')")
			took := 0.0
			p.do(view.place, chromedp.Evaluate(fmt.Sprintf("window.shows(%q, %q)", "#/"+view.place, view.text), &took, awaited))
			fmt.Printf("%-32s %6.0f ms\n", "/"+view.place, took)
		}
	}
	p.clean("large")
}

// fillLarge submits futures, a tenth of them in lanes of their own, and registers workers.
func fillLarge(t *testing.T, client *futures.Client, total int) {
	ctx := context.Background()
	require.NoError(t, client.SetLaneKind(ctx, "k1", futures.LaneSettings{Width: 1}))
	for i := range 1000 {
		_, err := client.Cluster().Register(ctx, layout.WorkerInfo{Name: fmt.Sprint("worker-", i),
			Functions: []string{"go:other"}, Queues: []string{"default"}, Capacity: layout.Resources{Slots: 4}})
		require.NoError(t, err)
	}
	work := make(chan int)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for from := range work {
				tasks := make([]futures.Task, 1000)
				for i := range tasks {
					tasks[i] = futures.Task{Function: "go:f", Queue: fmt.Sprint("q", i%50), NoNotify: true}
					if i%10 == 0 {
						tasks[i].Lane = futures.Lane{Kind: "k1", Key: fmt.Sprint("key-", from+i)}
					}
				}
				_, err := client.SubmitMany(ctx, tasks)
				require.NoError(t, err)
			}
		})
	}
	for from := 0; from < total; from += 1000 {
		work <- from
	}
	close(work)
	all.Wait()
}
