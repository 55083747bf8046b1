package browsertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/workers"
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
		{"", "waiting"}, {"futures", "Submitted"}, {"futures?state=ready&queue=q7", "q7"},
		{"futures?state=failed", "No future"},
		{"queues", "Waited"}, {"functions", "Workers"}, {"lanes", "k1"}, {"lanes/k1", "key-"}, {"workers", "The first 200"},
		{"limits", "Used"}, {"objects", "copies"}, {"count/queue", "Groups"}, {"count/lane?state=ready", "Groups"},
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

// TestBurndownBesidePages runs futures with and without ten overviews that ask as often as a page
// does, in turns, and tells the ratio of the rates.
func TestBurndownBesidePages(t *testing.T) {
	total, _ := strconv.Atoi(os.Getenv("FUTURA_LARGE"))
	if total == 0 {
		t.Skip("FUTURA_LARGE is unset: set it to a number of futures, such as 1000000")
	}
	rounds := map[bool][]float64{}
	for round := range 10 {
		rounds[round%2 == 1] = append(rounds[round%2 == 1], burndown(t, total/4, round%2 == 1))
	}
	mean := func(all []float64) (sum float64) {
		for _, rate := range all {
			sum += rate / float64(len(all))
		}
		return sum
	}
	fmt.Printf("futures a second alone %.0f, beside ten pages %.0f: %.3f\n", mean(rounds[false]), mean(rounds[true]),
		mean(rounds[true])/mean(rounds[false]))
}

// burndown returns how many futures a second a worker runs.
func burndown(t *testing.T, total int, pages bool) float64 {
	ctx, cancel := context.WithCancel(context.Background())
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(ctx, db, futures.Options{})
	require.NoError(t, err)
	s := serveSite(t, client, nil)
	tasks := make([]futures.Task, 1000)
	for i := range tasks {
		tasks[i] = futures.Task{Function: "go:f", NoNotify: true}
	}
	for range total / len(tasks) {
		_, err := client.SubmitMany(ctx, tasks)
		require.NoError(t, err)
	}
	var ran atomic.Int64
	all := make(chan struct{})
	worker, err := workers.New(client, workers.Options{Slots: 64})
	require.NoError(t, err)
	require.NoError(t, worker.Register("f", func(context.Context, []byte) ([]byte, error) {
		if ran.Add(1) == int64(total/len(tasks)*len(tasks)) {
			close(all)
		}
		return nil, nil
	}))
	ended := make(chan error, 1)
	var asking sync.WaitGroup
	if pages {
		for i := range 10 {
			asking.Go(func() { askAsAPage(ctx, s, time.Duration(i)*300*time.Millisecond) })
		}
	}
	from := time.Now()
	go func() { ended <- worker.Run(ctx) }()
	<-all
	took := time.Since(from)
	cancel()
	asking.Wait()
	require.NoError(t, errors.Join(<-ended, client.Close(context.Background()), db.Close()))
	return float64(ran.Load()) / took.Seconds()
}

// askAsAPage asks what an overview asks, every 3 s, until ctx ends.
func askAsAPage(ctx context.Context, s *site, after time.Duration) {
	next := time.NewTimer(after)
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		for _, path := range []string{"overview", "activity?last=1h&by=minute", "activity?last=24h&by=hour"} {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/"+path, nil)
			if err != nil {
				return
			}
			r.Header.Set("Authorization", "Bearer "+secrets[stack.Read])
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}
		next.Reset(3 * time.Second)
	}
}
