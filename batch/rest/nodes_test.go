package rest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// crew are workers that answer a vote each with a word of their own.
type crew struct {
	*testing.T
	client *futures.Client
	mu     sync.Mutex
	ran    map[string]int // by worker
}

// add starts a worker that says word; with "fail" its runs fail, with "never" they
// don't end.
func (c *crew) add(word string, o workers.Options) *workers.Worker {
	c.Helper()
	w, err := workers.New(c.client, o)
	require.NoError(c, err)
	require.NoError(c, w.Register("vote", func(ctx context.Context, in []byte) ([]byte, error) {
		info, _ := workers.InfoFrom(ctx)
		c.mu.Lock()
		c.ran[string(info.Worker)]++
		c.mu.Unlock()
		switch word {
		case "fail":
			return nil, fmt.Errorf("no vote")
		case "never":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []byte(word + string(in)), nil
	}))
	storetest.Background(c.T, w.Run)
	<-w.Ready()
	return w
}

func newCrew(t *testing.T, o rest.Options) (*crew, *fixture) {
	o.Client = newClient(t)
	return &crew{T: t, client: o.Client, ran: map[string]int{}}, newFixture(t, o)
}

func vote(nodes int, more string) string {
	return fmt.Sprintf(`{"function_id":"go:vote","config":{"stdin":"!","number_of_nodes":%d%s}}`, nodes, more)
}

// TestAnExecutionRunsOnSeveralWorkers has five workers, of whom four agree.
func TestAnExecutionRunsOnSeveralWorkers(t *testing.T) {
	t.Parallel()
	c, f := newCrew(t, rest.Options{})
	ids := map[string]bool{}
	var dissent string
	for i := range 5 {
		word := "yes"
		if i == 2 {
			word = "no"
		}
		w := c.add(word, workers.Options{})
		if ids[string(w.ID())] = true; i == 2 {
			dissent = string(w.ID())
		}
	}
	for _, nodes := range []int{-1, 5} {
		clear(c.ran)
		var ran executed
		f.send("POST", executePath, vote(nodes, `,"result_aggregation":{"enable":true}`)).Into(200, &ran)
		require.Equal(t, "200", ran.Code, ran.Message)
		require.Empty(t, ran.Message)
		require.Len(t, ran.Cluster.Peers, 5)
		require.Len(t, ran.Results, 2)
		require.Equal(t, "yes!", ran.Results[0].Result.Stdout)
		require.InDelta(t, 80, ran.Results[0].Frequency, 1e-9)
		require.Len(t, ran.Results[0].Peers, 4)
		require.Equal(t, "no!", ran.Results[1].Result.Stdout)
		require.Equal(t, []string{dissent}, ran.Results[1].Peers)
		require.InDelta(t, 20, ran.Results[1].Frequency, 1e-9)
		for id := range ids {
			require.Equal(t, 1, c.ran[id], "each worker once")
		}
		var again executed
		f.send("POST", "/api/v1/functions/requests/result", `{"id":"`+ran.RequestID+`"}`).Into(200, &again)
		require.Equal(t, ran, again)
	}
	clear(c.ran)
	var ran executed
	f.send("POST", executePath, vote(3, "")).Into(200, &ran)
	require.Len(t, ran.Cluster.Peers, 3)
	require.Len(t, c.ran, 3)
}

// TestAnExecutionOfWhichAPartWasRemoved has all futures but the first go: nobody is told to wait for them.
func TestAnExecutionOfWhichAPartWasRemoved(t *testing.T) {
	t.Parallel()
	c, f := newCrew(t, rest.Options{})
	for range 2 {
		c.add("yes", workers.Options{})
	}
	var ran executed
	f.send("POST", executePath, vote(2, "")).Into(200, &ran)
	first, err := layout.ParseID(ran.RequestID)
	require.NoError(t, err)
	require.NoError(t, c.client.Discard(t.Context(), layout.Neighbour(first, 1)))
	f.send("POST", "/api/v1/functions/requests/result", `{"id":"`+ran.RequestID+`"}`).Into(200, &ran)
	require.Equal(t, "206", ran.Code)
	require.Equal(t, "1 of 2 workers have answered", ran.Message)
}

// TestAnExecutionWithAKeyRunsOnce sends one twice, and another one with its key.
func TestAnExecutionWithAKeyRunsOnce(t *testing.T) {
	t.Parallel()
	c, f := newCrew(t, rest.Options{})
	c.add("a", workers.Options{})
	c.add("a", workers.Options{})
	var first, second executed
	f.send("POST", executePath, vote(2, ""), "Idempotency-Key", "k").Into(200, &first)
	c.add("a", workers.Options{})
	f.send("POST", executePath, vote(-1, ""), "Idempotency-Key", "k").Into(200, &second)
	require.Equal(t, first, second)
	require.Len(t, c.ran, 2)
	f.send("POST", executePath, `{"function_id":"go:vote","parameters":[{"value":"x"}],"config":{"number_of_nodes":2}}`,
		"Idempotency-Key", "k").Problem(409, "id_in_use", "another key")
	for _, other := range []string{`"stdin":"?"`, `"stdin":"!","env_vars":[{"name":"A","value":"1"}]`} {
		f.send("POST", executePath, `{"function_id":"go:vote","config":{"number_of_nodes":2,`+other+`}}`,
			"Idempotency-Key", "k").Problem(409, "id_in_use", "another key")
	}
	c.add("a", workers.Options{Queues: []string{"other"}})
	for _, other := range []string{
		vote(3, ""), vote(2, `,"threshold":0.9`), strings.Replace(vote(2, ""), "{", `{"topic":"other",`, 1),
	} {
		f.send("POST", executePath, other, "Idempotency-Key", "k").Problem(409, "id_in_use", "another key")
	}
}

// TestOneOfTwoExecutionsWithAKeyIsMade has two at once choose other numbers of workers.
func TestOneOfTwoExecutionsWithAKeyIsMade(t *testing.T) {
	t.Parallel()
	for name, numbers := range map[string][2]int{"fewer before": {2, 3}, "more before": {3, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first, second executed
			var f *fixture
			calls := 0
			choose := func(found []head.Candidate, _ int, _ string) ([]head.Candidate, func()) {
				if calls++; calls == 1 {
					f.send("POST", executePath, vote(-1, ""), "Idempotency-Key", "k").Into(200, &first)
					return found[:numbers[1]], func() {}
				}
				return found[:numbers[0]], func() {}
			}
			c, fixed := newCrew(t, rest.Options{Choose: choose})
			f = fixed
			for range 3 {
				c.add("a", workers.Options{})
			}
			f.send("POST", executePath, vote(-1, ""), "Idempotency-Key", "k").Into(200, &second)
			require.Equal(t, "200", first.Code)
			require.Len(t, first.Cluster.Peers, numbers[0])
			require.Equal(t, first, second)
			counts, err := c.client.Cluster().Counts(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, numbers[0], counts.Total(layout.Realized), "no future is left over")
		})
	}
}

// TestAnExecutionLooksAgainAfterAPause has three roll calls that workers answer which have gone by the time of the
// submit.
func TestAnExecutionLooksAgainAfterAPause(t *testing.T) {
	t.Parallel()
	calls := 0
	choose := func(found []head.Candidate, _ int, _ string) ([]head.Candidate, func()) {
		chosen := slices.Clone(found[:1])
		if calls++; calls <= 3 {
			chosen[0].Worker = "gone"
		}
		return chosen, func() {}
	}
	c, f := newCrew(t, rest.Options{Choose: choose})
	c.add("a", workers.Options{})
	var answer executed
	began := time.Now()
	f.send("POST", executePath, vote(-1, "")).Into(200, &answer)
	require.Equal(t, "200", answer.Code)
	require.Equal(t, 4, calls)
	require.GreaterOrEqual(t, time.Since(began), 600*time.Millisecond)
}

// TestAnswersOfAnExecution goes through those that are not whole: failures, too few
// workers, and workers that don't come back in time.
func TestAnswersOfAnExecution(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	c, f := newCrew(t, rest.Options{RollCallWait: 300 * time.Millisecond, Stack: stack.Options{Stopping: stopping}})
	var ran executed
	f.send("POST", executePath, vote(-1, "")).Into(200, &ran)
	require.Equal(t, "408", ran.Code)
	require.Contains(t, ran.Message, "0 of 1")
	require.Empty(t, ran.RequestID)
	c.add("fail", workers.Options{})
	f.send("POST", executePath, vote(-1, "")).Into(200, &ran)
	require.Equal(t, "500", ran.Code)
	require.Equal(t, "no vote", ran.Results[0].Result.Stderr)
	f.send("POST", executePath, vote(2, "")).Into(200, &ran)
	require.Equal(t, "408", ran.Code)
	require.Contains(t, ran.Message, "1 of 2")
	require.Len(t, ran.Cluster.Peers, 1)

	c.add("yes", workers.Options{})
	f.send("POST", executePath, vote(2, "")).Into(200, &ran)
	require.Equal(t, "200", ran.Code, "both have answered, one with a failure")
	require.Len(t, ran.Results, 2)

	c.add("never", workers.Options{DrainTimeout: time.Millisecond})
	time.AfterFunc(time.Second, func() { close(stopping) })
	f.send("POST", executePath, vote(3, `,"threshold":1`)).Into(200, &ran)
	require.Equal(t, "202", ran.Code)
	require.Contains(t, ran.Message, "2 of 3 workers have answered: ask again")
	require.Len(t, ran.Results, 2, "what is there is answered")
	require.Len(t, ran.Cluster.Peers, 3)
}

// TestAShareOfTheWorkersIsEnough has a worker go that would have answered: its future
// runs on another one, which has answered already, so that two of three have.
func TestAShareOfTheWorkersIsEnough(t *testing.T) {
	t.Parallel()
	c, f := newCrew(t, rest.Options{})
	c.add("yes", workers.Options{})
	c.add("yes", workers.Options{})
	gone, err := c.client.Cluster().Register(t.Context(), layout.WorkerInfo{
		Queues: []string{layout.DefaultQueue}, Functions: []string{"go:vote"}, Capacity: layout.Resources{Slots: 1},
		Labels: map[string]string{layout.LabelPeer: "12D3KooWGone"},
	})
	require.NoError(t, err)
	leave := func(share string) (ran executed) {
		t.Helper()
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.send("POST", executePath, vote(3, share)).Into(200, &ran)
		}()
		require.Eventually(t, func() bool {
			assigned, err := gone.Claim(context.Background(), fdbmodel.ClaimRequest{Free: gone.Info().Capacity, Max: 1})
			return err == nil && len(assigned.Futures) == 1
		}, time.Minute, 5*time.Millisecond)
		require.NoError(t, gone.Leave(context.Background()))
		<-done
		return ran
	}
	ran := leave(`,"threshold":0.9`)
	require.Equal(t, "206", ran.Code)
	require.Equal(t, "2 of 3 workers have answered", ran.Message)
	require.InDelta(t, 100, ran.Results[0].Frequency, 1e-9)
	require.Len(t, ran.Results[0].Peers, 2)
}

// TestAnExecutionHasItsQueueAndLabels asks for workers of a queue with a label, and
// for those that nobody has.
func TestAnExecutionHasItsQueueAndLabels(t *testing.T) {
	t.Parallel()
	told := make(chan map[string]string, 10)
	c, f := newCrew(t, rest.Options{RollCallWait: 250 * time.Millisecond,
		OnAttributes: func(function string, labels map[string]string) {
			if function == "go:vote" {
				told <- labels
			}
		}})
	c.add("plain", workers.Options{})
	c.add("other", workers.Options{Queues: []string{"gpu"}})
	c.add("gpu", workers.Options{Queues: []string{"gpu"}, Labels: map[string]string{"zone": "eu"}})
	for _, nodes := range []int{1, -1} {
		var ran executed
		body := fmt.Sprintf(`{"function_id":"go:vote","topic":"blockless/b7s/gpu","config":{"number_of_nodes":%d,`+
			`"runtime":{"run_time":60000},"attributes":{"values":[{"name":"zone","value":"eu"}]}}}`, nodes)
		f.send("POST", executePath, body).Into(200, &ran)
		require.Equal(t, "200", ran.Code, ran.Message)
		require.Len(t, ran.Results, 1)
		require.Equal(t, "gpu", ran.Results[0].Result.Stdout)
		require.Equal(t, map[string]string{"zone": "eu"}, <-told)
	}
	require.Empty(t, told)
	f.send("POST", executePath, `{"function_id":"go:vote","topic":"none"}`).
		Problem(400, "bad_batch", "no worker serves the queue none")
}

// TestAnExecutionNamesPeers has a peer answer beside a worker of the cluster.
func TestAnExecutionNamesPeers(t *testing.T) {
	t.Parallel()
	c, f := newCrew(t, rest.Options{})
	worker := c.add("yes", workers.Options{})
	peer, err := c.client.Cluster().Register(t.Context(), layout.WorkerInfo{
		Queues: []string{layout.DefaultQueue}, Functions: []string{"go:vote"}, Capacity: layout.Resources{Slots: 1},
		Labels: map[string]string{layout.LabelPeer: "12D3KooWPeer"},
	})
	require.NoError(t, err)
	done := make(chan executed)
	go func() {
		var ran executed
		f.send("POST", executePath, vote(-1, "")).Into(200, &ran)
		done <- ran
	}()
	var taken fdbmodel.ClaimAnswer
	require.Eventually(t, func() bool {
		taken, err = peer.Claim(context.Background(), fdbmodel.ClaimRequest{Free: peer.Info().Capacity, Max: 1})
		return err == nil && len(taken.Futures) == 1
	}, time.Minute, 5*time.Millisecond)
	_, err = peer.Finish(t.Context(), []fdbmodel.Completion{{
		Future: &taken.Futures[0], Result: &layout.Result{Value: []byte("yes!"), Usage: &layout.Usage{Memory: 1 << 20}},
	}})
	require.NoError(t, err)
	ran := <-done
	require.Equal(t, "200", ran.Code)
	require.Len(t, ran.Results, 1)
	require.ElementsMatch(t, []string{"12D3KooWPeer", string(worker.ID())}, ran.Results[0].Peers)
	require.ElementsMatch(t, ran.Results[0].Peers, ran.Cluster.Peers)
}
