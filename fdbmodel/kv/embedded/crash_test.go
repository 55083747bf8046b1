package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

const tinyValue = 400

// tiny makes a store rotate its log and write checkpoints all the time, and
// leave values to them.
func tiny(o Options) Options {
	o.SegmentSize, o.CheckpointBytes, o.LargeValue, o.HistoryVersions = 2<<10, 8<<10, tinyValue, 1
	return o
}

// crashStep is the i-th commit of a history: overwrites, inserts, clears.
func crashStep(tx kv.Tx, i int) {
	tx.Set([]byte("count"), binary.BigEndian.AppendUint32(nil, uint32(i)))
	tx.Set(fmt.Appendf(nil, "a%03d", i%37), fmt.Appendf(nil, "%d", i))
	tx.Set(fmt.Appendf(nil, "b%03d", i), make([]byte, i%300))
	if i%3 == 0 {
		tx.ClearRange(kv.Range{Begin: fmt.Appendf(nil, "b%03d", max(i-9, 0)), End: fmt.Appendf(nil, "b%03d", i-1)})
	}
	if i%5 == 0 {
		tx.Clear(fmt.Appendf(nil, "a%03d", i%11))
	}
	if i%4 == 0 {
		tx.Set(fmt.Appendf(nil, "large%d", i%7), make([]byte, tinyValue+i))
	}
	tx.Atomic(kv.Add, []byte("sum"), []byte{1, 0, 0})
}

// crashHistory returns the rows after each number of steps.
func crashHistory(t testing.TB, steps int) []map[string]string {
	s := OpenMemory(Options{})
	defer s.Close()
	history := []map[string]string{{}}
	for i := 1; i <= steps; i++ {
		tx := s.Begin(kv.Options{})
		crashStep(tx, i)
		commit(t, tx)
		history = append(history, contents(t, s))
	}
	return history
}

// crash is a state of the disk that a crash may leave, and how many steps had
// been acknowledged then.
type crash struct {
	fs    *vfs.MemFS
	acked int
}

// crashes runs the steps on a file system that crashes before and after each sync.
// sync does a sync, or not.
func crashes(t testing.TB, o Options, sync func(do func() error) error) []crash {
	const steps = crashSteps
	mem := vfs.NewCrashableMem()
	random := rand.New(rand.NewPCG(1, 2))
	var found []crash
	acked := 0
	record := func() {
		for _, percent := range []int{0, 50, 90} {
			cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random}
			found = append(found, crash{fs: mem.CrashClone(cfg), acked: acked})
		}
	}
	fs := &faultFS{FS: mem, syncing: func(do func() error) error {
		record()
		err := sync(do)
		record()
		return err
	}}
	o = tiny(o)
	o.FS, o.Inline = fs, true
	s, err := Open(context.Background(), "store", o)
	require.NoError(t, err)
	defer s.Close()
	for i := 1; i <= steps; i++ {
		tx := s.Begin(kv.Options{})
		crashStep(tx, i)
		commit(t, tx)
		if !o.SyncOff {
			acked = i
		}
	}
	require.NotZero(t, s.Stats().Checkpoints)
	return found
}

// check opens what the crash left and compares it with the history.
func (c crash) check(history []map[string]string) error {
	s, err := Open(context.Background(), "store", tiny(Options{FS: c.fs, Inline: true}))
	if err != nil {
		return fmt.Errorf("after %d: %w", c.acked, err)
	}
	defer s.Close()
	tx := s.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(context.Background())
	if err != nil {
		return err
	}
	rows, steps := map[string]string{}, 0
	for _, item := range page.Items {
		rows[string(item.Key)] = string(item.Value)
	}
	if count, ok := rows["count"]; ok {
		steps = int(binary.BigEndian.Uint32([]byte(count)))
	}
	if steps < c.acked {
		return fmt.Errorf("%d steps were acknowledged, %d are there", c.acked, steps)
	}
	if steps >= len(history) || !maps.Equal(rows, history[steps]) {
		return fmt.Errorf("the rows are not those after %d steps", steps)
	}
	return nil
}

const crashSteps = 120

func TestCrashAtEverySync(t *testing.T) {
	t.Parallel()
	history := crashHistory(t, crashSteps)
	found := crashes(t, Options{}, func(do func() error) error { return do() })
	require.Greater(t, len(found), 6*crashSteps)
	for _, c := range found {
		require.NoError(t, c.check(history))
	}
}

// TestCrashWithoutSyncs loses commits, but none before one that it keeps, and
// none by half.
func TestCrashWithoutSyncs(t *testing.T) {
	t.Parallel()
	history := crashHistory(t, crashSteps)
	for _, c := range crashes(t, Options{SyncOff: true}, func(do func() error) error { return do() }) {
		require.NoError(t, c.check(history))
	}
}

// TestCrashCheckFindsForgottenSyncs shows that the test above can fail.
func TestCrashCheckFindsForgottenSyncs(t *testing.T) {
	t.Parallel()
	history := crashHistory(t, crashSteps)
	for every := range 4 {
		if testing.Short() && every%3 != 0 {
			continue
		}
		n, wrong := 0, 0
		found := crashes(t, Options{}, func(do func() error) error {
			n++
			if n > 20 && (every == 0 || n%(every*7) == 0) {
				return nil
			}
			return do()
		})
		for _, c := range found {
			if c.check(history) != nil {
				wrong++
			}
		}
		require.NotZero(t, wrong, "one of %d syncs forgotten", every*7)
	}
}

// TestCrashOfAnOpening crashes the recovery from a crash.
func TestCrashOfAnOpening(t *testing.T) {
	t.Parallel()
	history := crashHistory(t, crashSteps)
	found := crashes(t, Options{}, func(do func() error) error { return do() })
	random := rand.New(rand.NewPCG(3, 4))
	crashed := 0
	for i := 0; i < len(found); i += 7 {
		first := found[i]
		var again []crash
		fs := &faultFS{FS: first.fs}
		fs.syncing = func(do func() error) error {
			err := do()
			again = append(again, crash{fs: first.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: random}),
				acked: first.acked})
			return err
		}
		s, err := Open(context.Background(), "store", tiny(Options{FS: fs, Inline: true}))
		require.NoError(t, err)
		fs.syncing = nil
		crashed += len(again)
		for _, c := range again {
			require.NoError(t, c.check(history))
		}
		require.NoError(t, s.Close())
	}
	require.Greater(t, crashed, len(found)/7)
}

// TestCrashUnderCommitters crashes the store while many commit.
func TestCrashUnderCommitters(t *testing.T) {
	t.Parallel()
	const committers, commits = 8, 60
	mem := vfs.NewCrashableMem()
	var acked [committers]atomic.Int64
	type state struct {
		fs    *vfs.MemFS
		acked [committers]int64
	}
	var mu sync.Mutex
	var states []state
	var n atomic.Int64
	fs := &faultFS{FS: mem, syncing: func(do func() error) error {
		if n.Add(1)%5 == 0 {
			mu.Lock()
			defer mu.Unlock()
			var st state
			for c := range acked {
				st.acked[c] = acked[c].Load()
			}
			st.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 30, RNG: rand.New(rand.NewPCG(5, uint64(n.Load())))})
			states = append(states, st)
		}
		return do()
	}}
	s := open(t, "store", tiny(Options{FS: fs}))
	var wait sync.WaitGroup
	for c := range committers {
		wait.Go(func() {
			for i := int64(1); i <= commits; i++ {
				tx := s.Begin(kv.Options{})
				tx.Set(fmt.Appendf(nil, "%d/a/%03d", c, i), nil)
				tx.Set(fmt.Appendf(nil, "%d/b/%03d", c, i), nil)
				if _, err := tx.Commit(context.Background()); err != nil {
					t.Error(err)
					return
				}
				acked[c].Store(i)
			}
		})
	}
	wait.Wait()
	require.NoError(t, s.Close())
	require.NotEmpty(t, states)
	for _, st := range states {
		s := open(t, "store", tiny(Options{FS: st.fs, Inline: true}))
		rows := contents(t, s)
		for c := range committers {
			for i := int64(1); i <= commits; i++ {
				_, a := rows[fmt.Sprintf("%d/a/%03d", c, i)]
				_, b := rows[fmt.Sprintf("%d/b/%03d", c, i)]
				require.Equal(t, a, b, "half of a commit")
				require.True(t, a || i > st.acked[c], "commit %d of %d is lost", i, c)
			}
		}
		require.NoError(t, s.Close())
	}
}

// TestAppendsThroughACrash looks for anomalies in what transactions saw before and after a crash. Those that ended
// before it hold.
func TestAppendsThroughACrash(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s, err := Open(t.Context(), "store", tiny(Options{FS: mem}))
	require.NoError(t, err)
	a, ended := kvtest.NewAppends([]byte("appends/")), make(chan error, 1)
	go func() { ended <- a.Run(t.Context(), s) }()
	<-a.Half()
	at := a.Now()
	crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 2))})
	require.NoError(t, <-ended)
	require.NoError(t, s.Close())
	a.Doubt(at)
	s, err = Open(t.Context(), "store", tiny(Options{FS: crashed}))
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, a.Run(t.Context(), s))
	a.Require(t.Context(), t, s)
}
