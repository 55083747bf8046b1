package batchtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// Ledger is what runs of items write down outside of every store. The zero value
// is ready to use.
type Ledger struct {
	mu      sync.Mutex
	runs    map[string]int
	printed map[string][]string
}

// ledgerAttempts is how often an item of a ledger's batch is tried, and
// ledgerCycle how many items are alike but for how many of their runs fail.
const (
	ledgerAttempts = 3
	ledgerCycle    = 5
)

// Request is a batch of go:run, which is Run, with n items: runs of some fail
// until they succeed, and others fail for good.
func (l *Ledger) Request(n int) batch.Request {
	r := batch.Request{
		Template:  batch.Template{FunctionID: "go:run", Method: "run", Config: batch.Config{Nodes: 2, Concurrency: 2}},
		Arguments: make([][]string, n), MaxAttempts: ledgerAttempts,
	}
	for i := range r.Arguments {
		r.Arguments[i] = []string{fmt.Sprint(i % ledgerCycle), fmt.Sprint(i)}
	}
	return r
}

// Run runs an item: the first argument is how many runs of it fail.
func (l *Ledger) Run(_ context.Context, args []byte) ([]byte, error) {
	var arguments []string
	if err := json.Unmarshal(args, &arguments); err != nil {
		return nil, err
	}
	key := strings.Join(arguments, " ")
	var failing int
	if _, err := fmt.Sscan(arguments[0], &failing); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs, l.printed = map[string]int{}, map[string][]string{}
	}
	l.runs[key]++
	if l.runs[key] <= failing {
		return nil, errors.New("not yet")
	}
	out := fmt.Sprintf("run %d of %s", l.runs[key], key)
	l.printed[key] = append(l.printed[key], out)
	return []byte(out), nil
}

// Compare holds the n items of a batch that is over against the runs. A store
// whose items run elsewhere loses the report of a run with its head, so that
// lossy allows more runs than attempts.
func (l *Ledger) Compare(t *testing.T, s batch.Store, id string, n int, lossy bool) {
	items, err := s.Items(context.Background(), id, 0, batch.MaxItems)
	require.NoError(t, err)
	require.Len(t, items, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, item := range items {
		key, failing := strings.Join(item.Arguments, " "), i%ledgerCycle
		require.GreaterOrEqual(t, l.runs[key], min(failing+1, ledgerAttempts), key)
		if item.Status == batch.Done {
			require.Contains(t, l.printed[key], item.Result.Stdout, key)
			require.LessOrEqual(t, item.Attempts, min(failing, ledgerAttempts-1), key)
		} else {
			require.Equal(t, batch.PermanentlyFailed, item.Status, key)
			require.Equal(t, ledgerAttempts, item.Attempts, key)
			require.GreaterOrEqual(t, failing, ledgerAttempts, key)
		}
		if !lossy {
			require.Equal(t, min(failing+1, ledgerAttempts), l.runs[key], key)
			require.Equal(t, failing < ledgerAttempts, item.Status == batch.Done, key)
			require.Equal(t, min(failing, ledgerAttempts), item.Attempts, key)
			require.LessOrEqual(t, len(l.printed[key]), 1, key)
		}
	}
}

// Kill starts this test binary again and again, with env, and kills the process
// when as many of n items are over, at kills random points in ascending order, and
// then calls killed. patience bounds how long the items between two kills may
// take.
func Kill(t *testing.T, n, kills int, patience time.Duration, over func() int, killed func(over int), env ...string) {
	points := make([]int, kills)
	for i := range points {
		points[i] = rand.IntN(n)
	}
	slices.Sort(points)
	for _, until := range points {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), env...)
		child.Stderr = os.Stderr
		require.NoError(t, child.Start())
		require.Eventually(t, func() bool { return over() >= until }, patience, time.Millisecond)
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		require.Equal(t, "signal: killed", child.ProcessState.String(), "a head has ended by itself")
		killed(until)
	}
}
