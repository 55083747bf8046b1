package grouping_test

import (
	"bufio"
	"container/heap"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// arrivals are when the tasks of each target were submitted, in their order.
type arrivals [][]time.Duration

// arrivalSize is how long a line is in the file of a submitter, which has one for each chunk.
const arrivalSize = 20

// arrival is the line of a chunk that is submitted now.
func arrival() string { return fmt.Sprintf("%019d\n", time.Now().UnixNano()) }

// readArrivals returns what the submitters of a fleet wrote down.
func (l *load) readArrivals(t *testing.T) arrivals {
	came := make(arrivals, l.Targets)
	for g := range l.Submitters {
		file, err := os.Open(filepath.Join(l.Dir, fmt.Sprint("submitted-", g)))
		require.NoError(t, err)
		lines := bufio.NewScanner(file)
		for at := 0; lines.Scan(); at += chunkSize {
			nanos, err := strconv.ParseInt(lines.Text(), 10, 64)
			require.NoError(t, err)
			for i := at; i < at+chunkSize && i*l.Submitters+g < l.Tasks; i++ {
				target := (i*l.Submitters + g) % l.Targets
				came[target] = append(came[target], time.Duration(nanos))
			}
		}
		require.NoError(t, errors.Join(lines.Err(), file.Close()))
	}
	for _, of := range came {
		slices.Sort(of)
	}
	return came
}

// turn is a target that wants a call, or a slot that is free, from a time on.
type turn struct {
	at     time.Duration
	target int
}

// turns is a heap of them, the first first.
type turns []turn

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].at < t[j].at }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)        { *t = append(*t, x.(turn)) }
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// callsFor returns how many calls workers make for tasks that came at these times, if nothing but the calls takes time:
// each target has one call at a time, which takes a slot. The call begins at once with Most tasks, or with one that is
// alone, and otherwise when it has Most, or has waited for Linger.
func (l *load) callsFor(came arrivals) (calls int) {
	var wanting, free turns
	for target, of := range came {
		if len(of) > 0 {
			heap.Push(&wanting, turn{of[0], target})
		}
	}
	for range l.Processes * l.Slots {
		free = append(free, turn{})
	}
	taken := make([]int, len(came))
	for len(wanting) > 0 {
		next, slot := heap.Pop(&wanting).(turn), heap.Pop(&free).(turn)
		left := came[next.target][taken[next.target]:]
		begin := max(next.at, slot.at)
		if n := arrived(left, begin); n > 1 && n < l.Most {
			begin += l.Linger
			if len(left) >= l.Most {
				begin = min(begin, left[l.Most-1])
			}
		}
		n := min(arrived(left, begin), l.Most)
		calls++
		taken[next.target] += n
		heap.Push(&free, turn{at: begin + l.Call})
		if n < len(left) {
			heap.Push(&wanting, turn{max(begin+l.Call, left[n]), next.target})
		}
	}
	return calls
}

// arrived counts tasks that have come at a time.
func arrived(of []time.Duration, at time.Duration) int {
	n, _ := slices.BinarySearch(of, at+1)
	return n
}

// TestCallsForArrivals counts calls by hand.
func TestCallsForArrivals(t *testing.T) {
	t.Parallel()
	every := func(n int, d time.Duration) (of []time.Duration) {
		for i := range n {
			of = append(of, time.Duration(i)*d)
		}
		return of
	}
	l := load{Most: 100, Processes: 1, Slots: 2, Call: 500 * time.Millisecond, Linger: 10 * time.Second}
	for name, c := range map[string]struct {
		came  arrivals
		calls int
	}{
		"all at once":            {arrivals{every(1000, 0), every(950, 0), every(1, 0)}, 21},
		"full before the linger": {arrivals{every(1001, 20*time.Millisecond)}, 11}, // the first one is alone
		"each alone":             {arrivals{every(50, time.Second)}, 50},
		// The first one is alone, and 42 come until the end of a linger and its call.
		"ended by the linger": {arrivals{every(1+5*42, time.Second/4)}, 6},
		// Two targets have one that is alone, 42, 42 and 15, and the others 22, 42 and 36.
		"too few slots": {arrivals{every(100, time.Second/2), every(100, time.Second/2), every(100, time.Second/2),
			every(100, time.Second/2)}, 14},
	} {
		if got := l.callsFor(c.came); got != c.calls {
			t.Errorf("%s: %d calls, not %d", name, got, c.calls)
		}
	}
}
