package head_test

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
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// killStore names the store of a process that is a head until it is killed.
const killStore = "FUTURA_HEAD_KILL_STORE"

func TestMain(m *testing.M) {
	if store := os.Getenv(killStore); store != "" {
		fmt.Fprintln(os.Stderr, headMain(store))
		os.Exit(1)
	}
	storetest.Main(m)
}

// killPatience bounds how long the items between two kills may take.
const killPatience = 5 * time.Minute

func killOptions(cluster *fdbmodel.Cluster) head.Options {
	return head.Options{
		Store:      futurestore.New(cluster, futurestore.Options{Backoff: layout.Backoff{Base: time.Millisecond}}),
		Dispatcher: head.NewCluster(cluster, ""), BootDelay: time.Millisecond, Look: 20 * time.Millisecond,
	}
}

func headMain(store string) error {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return err
	}
	cluster, err := fdbmodel.Open(ctx, db, "kill", fdbmodel.Options{})
	if err != nil {
		return err
	}
	return head.New(killOptions(cluster)).Run(ctx)
}

// ledger is what the functions write outside of the store.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int
	good map[string][]string // what runs that succeeded have printed
}

// run runs an item: the first argument is how many attempts of it fail.
func (l *ledger) run(_ context.Context, args []byte) ([]byte, error) {
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
	l.runs[key]++
	if l.runs[key] <= failing {
		return nil, errors.New("not yet")
	}
	out := fmt.Sprintf("run %d of %s", l.runs[key], key)
	l.good[key] = append(l.good[key], out)
	return []byte(out), nil
}

// TestHeadKilledAgainAndAgain kills heads at random points of a batch. Each item
// ends once, with the result of its own run, after as many attempts as it may
// have.
func TestHeadKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	items, kills := killItems, 5
	if os.Getenv("FUTURA_LONG") == "1" {
		items, kills = 5000, 20
	}
	db, address := sharedStore(t)
	cluster, err := fdbmodel.Open(context.Background(), db, "kill", fdbmodel.Options{})
	require.NoError(t, err)

	log := &ledger{runs: map[string]int{}, good: map[string][]string{}}
	for range 2 {
		w, err := workers.FromCluster(cluster, workers.Options{Slots: 2})
		require.NoError(t, err)
		require.NoError(t, w.Register("run", log.run))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-done)
		})
		<-w.Ready()
	}
	arguments := make([][]string, items)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprint(i % 5), fmt.Sprint(i)} // 3 attempts: those that need more fail
	}
	// The batch is made by a head that is never run: others find it.
	o := killOptions(cluster)
	made, _, err := head.New(o).Submit(t.Context(), batch.Request{
		Template: template(2), Arguments: arguments, MaxAttempts: 3,
	})
	require.NoError(t, err)
	done := func() int {
		p, err := o.Store.Progress(context.Background(), made.ID)
		require.NoError(t, err)
		return p[batch.Done] + p[batch.PermanentlyFailed]
	}
	for _, until := range killPoints(items, kills) {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), killStore+"="+address)
		child.Stderr = os.Stderr
		require.NoError(t, child.Start())
		require.Eventually(t, func() bool { return done() >= until }, killPatience, time.Millisecond)
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		require.Equal(t, "signal: killed", child.ProcessState.String(), "a head has ended by itself")
	}
	last := head.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- last.Run(ctx) }()
	require.Eventually(t, func() bool {
		b, err := o.Store.Get(context.Background(), made.ID)
		require.NoError(t, err)
		return b.Status == batch.Done
	}, killPatience, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ran)
	log.compare(t, o.Store, made.ID, items)
	report, err := audit.Check(context.Background(), cluster, audit.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

// killPoints are how many items are over when heads are killed.
func killPoints(items, kills int) []int {
	points := make([]int, kills)
	for i := range points {
		points[i] = rand.IntN(items)
	}
	slices.Sort(points)
	return points
}

// compare holds the items against what their runs wrote down.
func (l *ledger) compare(t *testing.T, store batch.Store, id string, n int) {
	items, err := store.Items(context.Background(), id, 0, batch.MaxItems)
	require.NoError(t, err)
	require.Len(t, items, n)
	for i, item := range items {
		key, failing := strings.Join(item.Arguments, " "), i%5
		require.Equal(t, min(failing+1, 3), l.runs[key], key)
		if failing >= 3 {
			require.Equal(t, batch.PermanentlyFailed, item.Status, key)
			require.Equal(t, 3, item.Attempts, key)
			continue
		}
		require.Equal(t, batch.Done, item.Status, key)
		require.Equal(t, failing, item.Attempts, key)
		require.Equal(t, []string{item.Result.Stdout}, l.good[key])
	}
}
