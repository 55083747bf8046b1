package notify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestWhoComesLastIsWokenLast registers a worker that comes last after another one: the other one is woken first,
// although the last to register is.
func TestWhoComesLastIsWokenLast(t *testing.T) {
	t.Parallel()
	n := New(nil, layout.NewKeyspace("c"), time.Now, nil)
	request := func(worker layout.WorkerID, last bool) *Request {
		return n.Open(worker, []string{"q"}).Request(Want{Queues: []string{"q"}, Free: layout.Resources{Slots: 1},
			Runs: func(string) bool { return true }, Last: last})
	}
	first, last := request("a", false), request("b", true)
	require.Equal(t, 1, n.wakeHere(Demand{Queue: "q"}, 1))
	require.Len(t, first.C(), 1)
	require.Empty(t, last.C())
	require.Equal(t, 1, n.wakeHere(Demand{Queue: "q"}, 2))
	require.Len(t, last.C(), 1)
	failed := request("c", false)
	last = request("d", true)
	require.Equal(t, 1, n.wakeHere(Demand{Queue: "q", FailedOn: "c"}, 1))
	require.Len(t, last.C(), 1, "who failed it comes after all others")
	require.Empty(t, failed.C())
}

func TestMessages(t *testing.T) {
	t.Parallel()
	want := Demand{Queue: "q", Function: "go:f", CPU: 1, RAM: 2, GPU: 3, Shard: 3, Labels: "a=b", Object: true}
	got, err := demandOf(want.Message(), 4)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = demandOf(want.Message(), 3)
	require.ErrorContains(t, err, "shard 3 of 3")
}

// TestPace doubles the wait with each look in vain, and halves it with each other one.
func TestPace(t *testing.T) {
	t.Parallel()
	var p Pace
	now := time.Unix(1_900_000_000, 0)
	for _, want := range []time.Duration{2, 4, 8} {
		p.Looked(now, false, 0)
		require.Equal(t, now.Add(want*time.Millisecond), p.Next())
	}
	for _, want := range []time.Duration{4, 2, 0} {
		p.Looked(now, true, 0)
		require.Equal(t, now.Add(want*time.Millisecond), p.Next())
	}
	p.Looked(now, true, time.Minute)
	require.Equal(t, now.Add(time.Minute), p.Next())
}
