package ferrettest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/mongostore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/workers"
)

// What a process is told that is a head until it is killed.
const (
	headCluster = "FUTURA_HEAD_CLUSTER"
	headServer  = "FUTURA_HEAD_SERVER"
)

// headMain is that process.
func headMain() error {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, os.Getenv(headCluster), kvopen.Options{})
	if err != nil {
		return err
	}
	cluster, err := fdbmodel.Open(ctx, db, "kill", fdbmodel.Options{})
	if err != nil {
		return err
	}
	s, err := mongostore.Open(ctx, mongostore.Options{URI: os.Getenv(headServer)})
	if err != nil {
		return err
	}
	return newHead(cluster, s).Run(ctx)
}

func newHead(cluster *fdbmodel.Cluster, s batch.Store) *head.Head {
	return head.New(head.Options{
		Store: s, Dispatcher: head.NewCluster(cluster, ""), BootDelay: time.Millisecond, Look: 50 * time.Millisecond,
		Backoff: time.Millisecond,
	})
}

// runs is what the functions write outside of the store.
type runs struct {
	mu   sync.Mutex
	n    map[string]int
	good map[string]map[string]bool
}

// run runs an item: the first argument is how many runs of it fail.
func (r *runs) run(_ context.Context, args []byte) ([]byte, error) {
	var arguments []string
	if err := json.Unmarshal(args, &arguments); err != nil {
		return nil, err
	}
	key := strings.Join(arguments, " ")
	var failing int
	if _, err := fmt.Sscan(arguments[0], &failing); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n[key]++
	if r.n[key] <= failing {
		return nil, errors.New("not yet")
	}
	out := fmt.Sprintf("run %d of %s", r.n[key], key)
	if r.good[key] == nil {
		r.good[key] = map[string]bool{}
	}
	r.good[key][out] = true
	return []byte(out), nil
}

// startCluster serves a cluster with two workers, and returns it with its
// address.
func startCluster(t *testing.T, r *runs) (*fdbmodel.Cluster, string) {
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	dir, err := os.MkdirTemp("", "futura-head-") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	listener, err := remote.ListenUnix(socket)
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return remote.Serve(ctx, listener, db, remote.ServerOptions{}) })
	cluster, err := fdbmodel.Open(context.Background(), remote.Share(db), "kill", fdbmodel.Options{})
	require.NoError(t, err)
	for range 2 {
		w, err := workers.FromCluster(cluster, workers.Options{Slots: 2})
		require.NoError(t, err)
		require.NoError(t, w.Register("run", r.run))
		background(t, w.Run)
		<-w.Ready()
	}
	return cluster, "remote:unix:" + socket
}

// background runs something until the test ends.
func background(t *testing.T, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// TestHeadKilledAgainAndAgain kills heads at random points of a batch, and lets
// two at a time work on it at the end. No item is lost or tried too often, and
// what is over stays as it is.
func TestHeadKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	items, kills := 200, 5
	if os.Getenv("FUTURA_LONG") == "1" {
		items, kills = 5000, 20
	}
	p := startServer(t)
	s := open(t, p.uri())
	p.indexKeys(t)
	log := &runs{n: map[string]int{}, good: map[string]map[string]bool{}}
	cluster, address := startCluster(t, log)
	arguments := make([][]string, items)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprint(i % 5), fmt.Sprint(i)} // 3 attempts: some that need more fail
	}
	// The batch is made by a head that is never run: others find it.
	made, _, err := newHead(cluster, s).Submit(t.Context(), batch.Request{
		Template:  batch.Template{FunctionID: "go:run", Method: "run", Config: batch.Config{Nodes: 2, Concurrency: 2}},
		Arguments: arguments, MaxAttempts: 3,
	})
	require.NoError(t, err)
	w := &watched{over: map[int]string{}}
	var over atomic.Int64
	p.set(func(p *proxy) { p.changed = countOver(&over) })
	points := make([]int, kills)
	for i := range points {
		points[i] = rand.IntN(items)
	}
	slices.Sort(points)
	for _, until := range points {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), headCluster+"="+address, headServer+"="+p.uri())
		child.Stderr = os.Stderr
		require.NoError(t, child.Start())
		require.Eventually(t, func() bool { return int(over.Load()) >= until }, 20*time.Minute, time.Millisecond)
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		require.Equal(t, "signal: killed", child.ProcessState.String(), "a head has ended by itself")
		require.GreaterOrEqual(t, w.look(t, s, made.ID), until)
	}
	background(t, newHead(cluster, s).Run)
	background(t, newHead(cluster, open(t, p.uri())).Run)
	require.Eventually(t, func() bool {
		b, err := s.Get(context.Background(), made.ID)
		require.NoError(t, err)
		return b.Status == batch.Done
	}, 20*time.Minute, 100*time.Millisecond)
	require.Equal(t, items, w.look(t, s, made.ID))
	require.EqualValues(t, items, over.Load())
	log.compare(t, s, made.ID, items)
}

// countOver counts the items that are over, once each time that one becomes so.
func countOver(n *atomic.Int64) func(collection string, update bson.Raw) {
	return func(collection string, update bson.Raw) {
		status, err := update.LookupErr("$set", "status")
		if collection == itemsOf && err == nil && batch.Status(status.Int32()).Over() {
			n.Add(1)
		}
	}
}

// watched are the results of items that were seen to be over.
type watched struct{ over map[int]string }

// look counts the items that are over, and checks that none changed since.
func (w *watched) look(t *testing.T, s batch.Store, id string) int {
	items, err := s.Items(context.Background(), id, 0, batch.MaxItems, batch.Done, batch.PermanentlyFailed)
	require.NoError(t, err)
	now := map[int]string{}
	for _, item := range items {
		now[item.Index] = fmt.Sprintf("%v %+v", item.Status, *item.Result)
	}
	for index, was := range w.over {
		require.Equal(t, was, now[index], "item %d changed after it was over", index)
	}
	w.over = now
	return len(now)
}

// compare holds the items against what their runs wrote down. A run whose report
// was lost with its head does not count, so there may be more runs than attempts.
func (r *runs) compare(t *testing.T, s batch.Store, id string, n int) {
	items, err := s.Items(context.Background(), id, 0, batch.MaxItems)
	require.NoError(t, err)
	require.Len(t, items, n)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, item := range items {
		key, failing := strings.Join(item.Arguments, " "), i%5
		require.GreaterOrEqual(t, r.n[key], min(failing+1, 3), key)
		if item.Status == batch.Done {
			require.True(t, r.good[key][item.Result.Stdout], key)
			require.LessOrEqual(t, item.Attempts, min(failing, 2), key)
			continue
		}
		require.Equal(t, batch.PermanentlyFailed, item.Status, key)
		require.Equal(t, 3, item.Attempts, key)
		require.GreaterOrEqual(t, failing, 3, key)
	}
}
