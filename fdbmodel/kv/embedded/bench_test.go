package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// lifecycle is a load like that of small futures: each is submitted with
// others, claimed with others, read, realized and deleted.
type lifecycle struct {
	db      kv.Database
	total   int64
	claim   int
	noSync  bool
	claimed atomic.Int64
	done    chan [][]byte
}

const (
	lifecycleShards = 16
	lifecycleBatch  = 100
)

func lifecycleKey(shard int, kind string, id uint64, suffix string) []byte {
	key := fmt.Appendf(nil, "futura/main/%02d/%s/", shard, kind)
	key = binary.BigEndian.AppendUint64(key, id)
	return append(binary.BigEndian.AppendUint64(key, id*0x9e3779b97f4a7c15), suffix...)
}

func random(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 8 {
		copy(b[i:], binary.LittleEndian.AppendUint64(nil, rand.Uint64()))
	}
	return b
}

func (l *lifecycle) update(retry kv.Retry, fn func(kv.Attempt) error) kv.Committed {
	r, err := kv.Transact(context.Background(), l.db, retry, fn)
	if err != nil {
		panic(err)
	}
	return r.Committed
}

// submit writes a batch of futures to one shard.
func (l *lifecycle) submit(first uint64, n int) {
	shard, spec, ready := rand.IntN(lifecycleShards), random(212), random(2)
	l.update(kv.Retry{}, func(a kv.Attempt) error {
		for i := range n {
			id := first + uint64(i)
			a.Set(lifecycleKey(shard, "futures", id, "/spec"), spec)
			a.Set(lifecycleKey(shard, "ready/default", id, ""), ready)
		}
		return nil
	})
}

// work claims, reads and realizes futures until all are taken.
func (l *lifecycle) work(worker int) {
	ctx := context.Background()
	claim, result := random(60), random(100)
	for l.claimed.Load() < l.total {
		shard := rand.IntN(lifecycleShards)
		prefix := fmt.Appendf(nil, "futura/main/%02d/ready/default/", shard)
		var ids [][]byte
		c := l.update(kv.Retry{Options: kv.Options{NoSync: l.noSync}}, func(a kv.Attempt) error {
			ids = ids[:0]
			page, err := a.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: l.claim}).Wait(ctx)
			for _, item := range page.Items {
				id := item.Key[len(prefix):]
				ids = append(ids, append(fmt.Appendf(nil, "futura/main/%02d/futures/", shard), id...))
				a.Clear(item.Key)
				a.Set(append(ids[len(ids)-1], "/state/claim"...), claim)
			}
			if len(ids) > 0 {
				a.Set(fmt.Appendf(nil, "futura/main/claims/%d", worker), random(16*len(ids)))
			}
			return err
		})
		if len(ids) == 0 {
			runtime.Gosched()
			continue
		}
		l.claimed.Add(int64(len(ids)))
		reader := l.db.Begin(kv.Options{})
		reader.SetReadVersion(c.Version)
		for _, id := range ids {
			p, err := reader.Snapshot().GetRange(kv.Prefix(id), kv.RangeOptions{}).Wait(ctx)
			if err != nil || len(p.Items) != 2 {
				panic(fmt.Sprint(len(p.Items), err))
			}
		}
		reader.Cancel()
		l.update(kv.Retry{}, func(a kv.Attempt) error {
			if a.Number == 1 {
				a.SetReadVersion(c.Version)
			}
			for _, id := range ids {
				state := kv.Prefix(append(append([]byte{}, id...), "/state/"...))
				if p, err := a.GetRange(state, kv.RangeOptions{}).Wait(ctx); err != nil || len(p.Items) != 1 {
					return fmt.Errorf("%d rows: %w", len(p.Items), err)
				}
				a.Set(append(append([]byte{}, id...), "/state/result"...), result)
			}
			a.SetVersionstampedKey(append([]byte("futura/main/mail/"), make([]byte, 10)...), 17, random(96*len(ids)))
			return nil
		})
		l.done <- ids
	}
}

// acknowledge deletes n futures that were realized, those that wait together.
func (l *lifecycle) acknowledge(n int) {
	for n > 0 {
		ids := <-l.done
		for waiting := true; waiting && len(ids) < 4*lifecycleBatch; {
			select {
			case more := <-l.done:
				ids = append(ids, more...)
			default:
				waiting = false
			}
		}
		n -= len(ids)
		l.update(kv.Retry{}, func(a kv.Attempt) error {
			for _, id := range ids {
				a.ClearRange(kv.Prefix(id))
			}
			return nil
		})
	}
}

func (l *lifecycle) run() {
	var wait sync.WaitGroup
	for w := range 8 {
		wait.Go(func() { l.work(w) })
	}
	wait.Go(func() { l.acknowledge(int(l.total)) })
	var next atomic.Int64
	for range 2 {
		wait.Go(func() {
			for {
				first := next.Add(lifecycleBatch) - lifecycleBatch
				if first >= l.total {
					return
				}
				l.submit(uint64(first), int(min(lifecycleBatch, l.total-first)))
			}
		})
	}
	wait.Wait()
}

func benchmarkLifecycle(b *testing.B, s *Store, claim int, noSync bool) {
	defer s.Close()
	l := &lifecycle{db: s, total: int64(b.N), claim: claim, noSync: noSync, done: make(chan [][]byte, 1<<16)}
	b.ResetTimer()
	l.run()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "futures/s")
	st := s.Stats()
	b.ReportMetric(float64(st.SyncMedian.Microseconds()), "sync-us")
	b.ReportMetric(float64(b.N)/float64(st.Batches), "futures/batch")
	b.ReportMetric(float64(st.Conflicts)/float64(b.N)*1000, "conflicts/1k")
}

func BenchmarkLifecycle64(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), Options{})
	require.NoError(b, err)
	benchmarkLifecycle(b, s, 64, false)
}

func BenchmarkLifecycle16(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), Options{})
	require.NoError(b, err)
	benchmarkLifecycle(b, s, 16, false)
}

func BenchmarkLifecycle16NoSyncClaims(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), Options{})
	require.NoError(b, err)
	benchmarkLifecycle(b, s, 16, true)
}

func BenchmarkLifecycle64Memory(b *testing.B) {
	benchmarkLifecycle(b, OpenMemory(Options{}), 64, false)
}

func BenchmarkLoneCommit(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), Options{})
	require.NoError(b, err)
	defer s.Close()
	l := &lifecycle{db: s}
	value := random(100)
	for b.Loop() {
		l.update(kv.Retry{}, func(a kv.Attempt) error {
			a.Set([]byte("key"), value)
			return nil
		})
	}
	b.ReportMetric(float64(s.Stats().SyncMedian.Nanoseconds()), "sync-ns")
}

// BenchmarkMemory reports what a row of 45 bytes of key and 60 of value takes.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	s := OpenMemory(Options{})
	defer s.Close()
	before := heap()
	n := 0
	for b.Loop() {
		tx := s.Begin(kv.Options{})
		for range 100 {
			tx.Set(append(lifecycleKey(n%lifecycleShards, "futures", uint64(n), ""), "/spc"...)[:45], make([]byte, 60))
			n++
		}
		commit(b, tx)
	}
	b.ReportMetric((heap()-before)/float64(s.Stats().Keys), "B/row")
	b.ReportMetric(float64(s.Stats().Memory)/float64(s.Stats().Keys), "estimated-B/row")
}

// BenchmarkOpen reports how many rows are recovered each second, from a log
// and from a checkpoint.
func BenchmarkOpen(b *testing.B) {
	const rows = 500_000
	for _, checkpoint := range []bool{false, true} {
		b.Run(fmt.Sprintf("checkpoint=%t", checkpoint), func(b *testing.B) {
			dir := b.TempDir()
			s, err := Open(context.Background(), dir, Options{})
			require.NoError(b, err)
			l := &lifecycle{db: s}
			for i := 0; i < rows; i += 2 * lifecycleBatch {
				l.submit(uint64(i), lifecycleBatch)
			}
			if checkpoint {
				require.NoError(b, s.Checkpoint(context.Background()))
			}
			require.NoError(b, s.Close())
			for b.Loop() {
				s, err := Open(context.Background(), dir, Options{})
				require.NoError(b, err)
				require.EqualValues(b, rows, s.Stats().Keys)
				require.NoError(b, s.Close())
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkProducers reports what 16 goroutines reach that commit one small
// transaction after the other, and how many sync times a commit takes.
func BenchmarkProducers(b *testing.B) {
	const producers = 16
	s, err := Open(context.Background(), b.TempDir(), Options{})
	require.NoError(b, err)
	defer s.Close()
	l := &lifecycle{db: s}
	var next atomic.Uint64
	var wait sync.WaitGroup
	b.ResetTimer()
	for range producers {
		wait.Go(func() {
			for {
				n := next.Add(1)
				if n > uint64(b.N) {
					return
				}
				l.submit(n, 1)
			}
		})
	}
	wait.Wait()
	b.StopTimer()
	st, took := s.Stats(), b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/took, "commits/s")
	b.ReportMetric(float64(st.SyncMedian.Microseconds()), "sync-us")
	b.ReportMetric(float64(b.N)/float64(st.Syncs), "commits/sync")
	b.ReportMetric(took*producers/float64(b.N)/st.SyncMedian.Seconds(), "syncs/commit")
	b.ReportMetric(took/float64(st.Syncs)/st.SyncMedian.Seconds(), "cycle/sync")
}
