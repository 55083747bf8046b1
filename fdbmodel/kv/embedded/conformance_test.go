package embedded

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/internal/clock"
)

// stores opens stores for the conformance suite.
type stores struct {
	options Options
	onDisk  bool
	// coldest leaves all rows to the tables every few transactions.
	coldest bool

	mu   sync.Mutex
	open map[kv.Database]openStore
}

type openStore struct {
	dir  string
	time *clock.Virtual
	// last is the store that is in dir now.
	last **Store
}

func (c *stores) start(t testing.TB, dir string, last **Store) kv.Database {
	o := c.options
	virtual := clock.NewVirtual(time.Unix(0, 0))
	o.Clock = virtual
	if c.onDisk {
		s, err := Open(context.Background(), dir, o)
		require.NoError(t, err)
		*last = s
	} else {
		*last = OpenMemory(o)
	}
	db := kv.Database(*last)
	if c.coldest {
		db = &coldStore{Store: *last}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[db] = openStore{dir: dir, time: virtual, last: last}
	return db
}

// coldStore is a store whose rows all lie on disk as every third transaction begins. A log of a
// megabyte stays: large changes are left to the other kinds.
type coldStore struct {
	*Store
	begun atomic.Int64
}

func (c *coldStore) Begin(o kv.Options) kv.Tx {
	if c.begun.Add(1)%3 == 0 && c.Stats().LogBytes < 1<<20 {
		_ = c.Checkpoint(context.Background()) // a store that has failed tells its transactions
	}
	return c.Store.Begin(o)
}

func (c *stores) find(db kv.Database) openStore {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[db]
}

func (c *stores) suite() kvtest.Options {
	c.open = map[kv.Database]openStore{}
	o := kvtest.Options{
		New: func(t testing.TB) kv.Database {
			dir, last := t.TempDir(), new(*Store)
			t.Cleanup(func() { require.NoError(t, (*last).Close()) })
			return c.start(t, dir, last)
		},
		ExpireTx:    func(db kv.Database) { c.find(db).time.Advance(kv.TxLifetime + time.Second) },
		ManyWatches: true,
		Brief:       c.coldest,
	}
	if c.onDisk {
		o.Reopen = func(t testing.TB, db kv.Database) kv.Database {
			require.NoError(t, db.Close())
			found := c.find(db)
			return c.start(t, found.dir, found.last)
		}
	}
	return o
}

// conform runs the suite on stores of several kinds.
func conform(t *testing.T, kinds map[string]*stores) {
	t.Parallel()
	for name, c := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kvtest.Run(t, c.suite())
		})
	}
}

func TestConformance(t *testing.T) {
	conform(t, map[string]*stores{
		"memory": {},
		"disk":   {onDisk: true},
	})
}

// TestConformanceOfModes is TestConformance for stores that differ in when they write, and in what memory keeps, alone.
func TestConformanceOfModes(t *testing.T) {
	const history = 128 // a random program of 63 steps writes fewer values, and deletes each once at most
	spilled := Options{FS: vfs.NewMem(), SegmentSize: 4 << 10, CheckpointBytes: 1 << 10, LargeValue: 1,
		HistoryVersions: history, Inline: true}
	cold := Options{FS: vfs.NewMem(), SegmentSize: 4 << 10, CheckpointBytes: 1, Memory: 1, HistoryVersions: history,
		Inline: true}
	coldest := Options{FS: vfs.NewMem(), Inline: true, Memory: 1, CheckpointBytes: 1 << 30}
	conform(t, map[string]*stores{
		"spilled":     {onDisk: true, options: spilled},
		"cold":        {onDisk: true, options: cold},
		"inline":      {onDisk: true, options: Options{Inline: true}},
		"sync off":    {onDisk: true, options: Options{SyncOff: true}},
		"checkpoints": {onDisk: true, options: Options{SegmentSize: 4 << 10, CheckpointBytes: 16 << 10}},
		"cold too":    {onDisk: true, options: Options{SegmentSize: 4 << 10, CheckpointBytes: 1, Memory: 1}},
		"coldest":     {onDisk: true, options: coldest, coldest: true},
	})
}
