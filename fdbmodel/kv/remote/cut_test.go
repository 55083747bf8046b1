package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

// behindProxy returns a store in memory, a proxy before it, and a client behind
// that. What the proxy holds back is what the test sends: there are no pings.
func behindProxy(t testing.TB) (*embedded.Store, *proxy, *Database) {
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	at, _ := serve(t, store, ServerOptions{IdleTimeout: time.Hour})
	p := newProxy(t, at)
	db, err := Open(t.Context(), p.at, Options{PingInterval: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return store, p, db
}

func update(t testing.TB, db kv.Database, fn func(kv.Tx)) {
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(a kv.Attempt) error {
		fn(a)
		return nil
	})
	require.NoError(t, err)
}

func get(t testing.TB, db kv.Database, key string) (value string) {
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(a kv.Attempt) error {
		stored, err := a.Get([]byte(key)).Wait(t.Context())
		value = string(stored)
		return err
	})
	require.NoError(t, err)
	return value
}

// beginAndRead begins a transaction at the server.
func beginAndRead(t testing.TB, db kv.Database) kv.Tx {
	tx := db.Begin(kv.Options{})
	_, err := tx.Get([]byte("a")).Wait(t.Context())
	require.NoError(t, err)
	return tx
}

func TestBrokenBeforeCommitIsRetryable(t *testing.T) {
	t.Parallel()
	store, p, db := behindProxy(t)
	tx := beginAndRead(t, db)
	tx.Set([]byte("a"), []byte("lost"))
	l, _, err := db.current()
	require.NoError(t, err)
	p.cut()
	<-l.broken
	_, err = tx.Get([]byte("b")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.NotErrorIs(t, err, kv.ErrUnknownResult)
	_, err = tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.NotErrorIs(t, err, kv.ErrUnknownResult)
	require.Empty(t, get(t, db, "a"))
	require.Empty(t, get(t, store, "a"))
}

func TestBrokenAfterReadsCommitsWithoutTheServer(t *testing.T) {
	t.Parallel()
	_, p, db := behindProxy(t)
	tx := beginAndRead(t, db)
	p.cut()
	done, err := tx.Commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, kv.Committed{Version: kv.NoVersion}, done)
}

// TestCutCommitIsUnknown cuts the connection before a commit reaches the
// server, and before its answer reaches the client.
func TestCutCommitIsUnknown(t *testing.T) {
	t.Parallel()
	for direction, want := range map[int]string{toServer: "", toClient: "new"} {
		t.Run(fmt.Sprint(direction), func(t *testing.T) {
			t.Parallel()
			store, p, db := behindProxy(t)
			tx := db.Begin(kv.Options{})
			_, err := tx.ReadVersion(t.Context())
			require.NoError(t, err)
			tx.Set([]byte("a"), []byte("new"))
			p.hold(direction)
			result := make(chan error, 1)
			go func() {
				_, err := tx.Commit(t.Context())
				result <- err
			}()
			<-p.stalled
			p.cut()
			err = <-result
			require.ErrorIs(t, err, kv.ErrUnknownResult)
			require.ErrorIs(t, err, kv.ErrUnavailable)
			_, err = tx.Commit(t.Context())
			require.ErrorIs(t, err, kv.ErrUsed)
			p.release()
			if direction == toClient {
				require.Equal(t, want, get(t, store, "a"))
			}
			require.Equal(t, get(t, store, "a"), get(t, db, "a"))
		})
	}
}

func TestCommitWhoseContextEndsIsUnknown(t *testing.T) {
	t.Parallel()
	_, p, db := behindProxy(t)
	tx := db.Begin(kv.Options{})
	tx.Set([]byte("a"), []byte("new"))
	p.hold(toClient)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := tx.Commit(ctx)
		result <- err
	}()
	<-p.stalled
	cancel()
	err := <-result
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.ErrorIs(t, err, context.Canceled)
	p.release()
	require.Equal(t, "new", get(t, db, "a"))
}

func TestBrokenWatchEnds(t *testing.T) {
	t.Parallel()
	store, p, db := behindProxy(t)
	watch := func() kv.Watch {
		tx := db.Begin(kv.Options{})
		w := tx.Watch([]byte("a"))
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
		return w
	}
	w := watch()
	p.cut()
	<-w.Done()
	require.ErrorIs(t, w.Err(), kv.ErrUnavailable)
	require.Empty(t, get(t, db, "a"))
	w = watch()
	update(t, store, func(tx kv.Tx) { tx.Set([]byte("a"), nil) })
	<-w.Done()
	require.NoError(t, w.Err())
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	_, p, db := behindProxy(t)
	reading, writing, watching := db.Begin(kv.Options{}), db.Begin(kv.Options{}), db.Begin(kv.Options{})
	w := watching.Watch([]byte("a"))
	_, err := watching.Commit(t.Context())
	require.NoError(t, err)
	p.hold(toServer)
	read, written := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := reading.Get([]byte("a")).Wait(context.Background())
		read <- err
	}()
	<-p.stalled
	writing.Set([]byte("a"), nil)
	go func() {
		_, err := writing.Commit(context.Background())
		written <- err
	}()
	require.Eventually(t, func() bool {
		writing := writing.(*tx)
		writing.talk.mu.Lock()
		defer writing.talk.mu.Unlock()
		return writing.talk.doubt
	}, patience, time.Millisecond)
	require.NoError(t, db.Close())
	require.ErrorIs(t, <-read, kv.ErrClosed)
	err = <-written
	require.ErrorIs(t, err, kv.ErrClosed)
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	<-w.Done()
	require.ErrorIs(t, w.Err(), kv.ErrClosed)
	require.NoError(t, db.Close())
	later := db.Begin(kv.Options{})
	require.ErrorIs(t, later.Watch([]byte("a")).Err(), kv.ErrClosed)
	_, err = later.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrClosed)
}

// TestServerThatHangsUpDuringClose ends the server between the first word of a
// close and the last.
func TestServerThatHangsUpDuringClose(t *testing.T) {
	t.Parallel()
	_, p, db := behindProxy(t)
	tx := db.Begin(kv.Options{})
	w := tx.Watch([]byte("a"))
	_, err := tx.Commit(t.Context())
	require.NoError(t, err)
	db.cancel()
	p.cut()
	<-w.Done()
	require.ErrorIs(t, w.Err(), kv.ErrClosed)
}

// TestConformanceOverBreakingConnections runs the suite while connections break
// after some kilobytes, in both directions.
func TestConformanceOverBreakingConnections(t *testing.T) {
	t.Parallel()
	seed := kvtest.FirstSeed()
	t.Log("seed", seed)
	kvtest.Run(t, kvtest.Options{Faults: true, New: func(t testing.TB) kv.Database {
		_, p, db := behindProxy(t)
		p.setBudget(seed, 5000)
		t.Cleanup(func() { p.setBudget(0, 0) })
		return db
	}})
}

// TestAppendsOfSeveralClients looks for anomalies in what the process of a store and two clients see, of which one has
// a connection that breaks.
func TestAppendsOfSeveralClients(t *testing.T) {
	t.Parallel()
	seed := kvtest.FirstSeed()
	t.Log("seed", seed)
	store, p, db := behindProxy(t)
	p.setBudget(seed, 2000)
	a := kvtest.NewAppends([]byte("appends/"))
	require.NoError(t, a.Run(t.Context(), store, dial(t, p.server), db))
	require.Positive(t, p.count())
	p.setBudget(0, 0)
	a.Require(t.Context(), t, store)
}

// rounds is how many transactions each goroutine of the counting test commits.
func rounds() int {
	if os.Getenv("FUTURA_LONG") == "1" {
		return 5000
	}
	return 300
}

// TestCutsNeverGiveWrongAnswers moves amounts between counters while the
// connection breaks everywhere: each transaction counts once, no reader sees a
// sum that is wrong, and versions that were read never go back.
func TestCutsNeverGiveWrongAnswers(t *testing.T) {
	t.Parallel()
	const movers, counters = 6, 4
	seed := kvtest.FirstSeed()
	t.Log("seed", seed)
	store, p, db := behindProxy(t)
	p.setBudget(seed, 150)
	failures := make(chan error, movers)
	var all sync.WaitGroup
	for mover := range movers {
		all.Go(func() {
			last := kv.Version(0)
			for round := range rounds() {
				version, err := move(t.Context(), db, mover, round, counters)
				if err == nil && version != kv.NoVersion && version <= last {
					err = errors.New("a version went back")
				}
				if err != nil {
					failures <- err
					return
				}
				last = max(last, version)
			}
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.Positive(t, p.count())
	t.Log("cuts", p.count())
	var sum, moves int64
	for i := range counters {
		sum += amount(get(t, store, fmt.Sprint("counter", i)))
	}
	moves = amount(get(t, store, "moves"))
	require.Zero(t, sum)
	require.EqualValues(t, movers*rounds(), moves)
}

func amount(value string) int64 {
	var b [8]byte
	copy(b[:], value)
	return int64(binary.LittleEndian.Uint64(b[:]))
}

func bytesOf(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// move takes one from a counter and gives it to another, exactly once.
func move(ctx context.Context, db kv.Database, mover, round, counters int) (kv.Version, error) {
	guard := fmt.Appendf(nil, "guard/%d/%d", mover, round)
	from, to := fmt.Sprint("counter", (mover+round)%counters), fmt.Sprint("counter", (mover+2*round+1)%counters)
	result, err := kv.Transact(ctx, db, kv.Retry{Random: func() float64 { return 0 }}, func(a kv.Attempt) error {
		if a.MaybeCommitted {
			mark, err := a.Get(guard).Wait(ctx)
			if err != nil || mark != nil {
				return err
			}
		}
		a.AddReadConflictKey(guard)
		a.Set(guard, nil)
		a.Atomic(kv.Add, []byte("moves"), bytesOf(1))
		page, err := a.Snapshot().GetRange(kv.Prefix([]byte("counter")), kv.RangeOptions{}).Wait(ctx)
		if err != nil {
			return err
		}
		sum := int64(0)
		for _, item := range page.Items {
			sum += amount(string(item.Value))
		}
		if sum != 0 {
			return fmt.Errorf("the counters add up to %d", sum)
		}
		a.Atomic(kv.Add, []byte(from), bytesOf(-1))
		a.Atomic(kv.Add, []byte(to), bytesOf(1))
		return nil
	})
	return result.Version, err
}
