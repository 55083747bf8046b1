package embedded

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// tableRows returns what the tables of a store have together, without what was deleted, and
// how many deletions they have.
func tableRows(t testing.TB, s *Store) (rows map[string]string, deletions int) {
	w, err := merged(s.disk.journal.dir, s.index.base.tables)
	require.NoError(t, err)
	rows = map[string]string{}
	for ; w.valid; require.NoError(t, w.next()) {
		if w.entry.deleted {
			deletions++
			continue
		}
		rows[string(w.entry.key)] = string(w.entry.value)
	}
	require.NoError(t, w.complete())
	require.NoError(t, w.close())
	return rows, deletions
}

func TestCheckpointWritesWhatChanged(t *testing.T) {
	t.Parallel()
	ctx, counting := context.Background(), &countingFS{FS: vfs.NewMem()}
	s := open(t, "store", Options{FS: counting, Inline: true})
	for i := range 10 {
		tx := s.Begin(kv.Options{})
		for k := range 1000 {
			tx.Set(fmt.Appendf(nil, "key%d/%03d", i, k), make([]byte, 100))
		}
		commit(t, tx)
	}
	require.NoError(t, s.Checkpoint(ctx))
	for i := range 2 {
		write(t, s, "key3/500", fmt.Sprint("changed", i))
		tx := s.Begin(kv.Options{})
		tx.Clear(fmt.Appendf(nil, "key4/50%d", i))
		tx.Set([]byte("brief"), nil)
		commit(t, tx)
		tx = s.Begin(kv.Options{})
		tx.Clear([]byte("brief"))
		commit(t, tx)
		before := counting.bytes.Load()
		require.NoError(t, s.Checkpoint(ctx))
		require.Less(t, counting.bytes.Load()-before, int64(10_000))
		tables := s.index.base.tables
		require.Len(t, tables, 2+i)
		require.EqualValues(t, 2, tables[1+i].Rows, "a row that was born and died since is in no table")
	}
	rows, deletions := tableRows(t, s)
	require.Equal(t, contents(t, s), rows)
	require.Equal(t, 2, deletions)
	require.NoError(t, s.Checkpoint(ctx))
	require.Len(t, s.index.base.tables, 3, "nothing has changed")
}

func TestMergesKeepTablesFew(t *testing.T) {
	t.Parallel()
	ctx, disk := context.Background(), vfs.NewMem()
	o := Options{FS: disk, Inline: true}
	s := open(t, "store", o)
	for i := range 60 {
		for k := range 10 {
			write(t, s, fmt.Sprintf("key%03d", (i*7+k)%100), fmt.Sprint(i))
		}
		tx := s.Begin(kv.Options{})
		tx.ClearRange(kv.Range{Begin: fmt.Appendf(nil, "key%03d", i*3%100), End: fmt.Appendf(nil, "key%03d", i*3%100+4)})
		commit(t, tx)
		require.NoError(t, s.Checkpoint(ctx))
		require.LessOrEqual(t, len(s.index.base.tables), 8)
		require.Len(t, files(t, disk), len(s.index.base.tables)+4, "a manifest, a lock, a mark and a segment")
		rows, _ := tableRows(t, s)
		require.Equal(t, contents(t, s), rows)
	}
	s.mergeLock.Lock()
	_, err := s.merge(ctx, s.index.base.tables, true)
	require.NoError(t, err)
	s.mergeLock.Unlock()
	rows, deletions := tableRows(t, s)
	require.Equal(t, contents(t, s), rows)
	require.Zero(t, deletions)
	require.NoError(t, s.Close())
	require.Equal(t, rows, contents(t, open(t, "store", o)))
}

// TestOpeningMergesNothing before its first commit, also if there are many tables. Then it does.
func TestOpeningMergesNothing(t *testing.T) {
	t.Parallel()
	ctx, disk := context.Background(), vfs.NewMem()
	s := open(t, "store", Options{FS: disk, Inline: true})
	for i := range mergeWidth {
		s.mergeLock.Lock() // as if a close came first
		s.unmerged = int64(i + 1)
		s.mergeLock.Unlock()
		write(t, s, "key", fmt.Sprint(i))
		require.NoError(t, s.Checkpoint(ctx))
	}
	require.Len(t, s.index.base.tables, mergeWidth)
	require.NoError(t, s.Close())
	before := files(t, disk)
	for _, inline := range []bool{true, false} {
		s = open(t, "store", Options{FS: disk, Inline: inline})
		s.mergeTables(ctx)
		require.Equal(t, "3", string(read(t, s, "key")))
		require.NoError(t, s.Close())
		require.Equal(t, before, files(t, disk))
	}
	s = open(t, "store", Options{FS: disk, Inline: true})
	write(t, s, "other", "")
	require.Len(t, s.index.base.tables, 1)
}

func TestMergeableTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sizes []int64
		first int
		ok    bool
	}{
		{sizes: nil},
		{sizes: []int64{5, 5, 5}},
		{sizes: []int64{5, 5, 5, 5}, first: 0, ok: true},
		{sizes: []int64{30, 5, 5, 5, 5}, first: 1, ok: true},
		{sizes: []int64{20, 5, 5, 5, 5}, first: 0, ok: true},
		{sizes: []int64{100, 50, 20, 10, 5, 2, 1}},
		{sizes: []int64{100, 50, 2, 1, 1, 1}, first: 2, ok: true},
	} {
		var tables []*table
		for _, size := range c.sizes {
			tables = append(tables, &table{tableFile: tableFile{Size: size}})
		}
		first, ok := mergeable(tables)
		require.Equal(t, c.ok, ok, c.sizes)
		if ok {
			require.Equal(t, c.first, first, c.sizes)
		}
	}
}

// TestTablesOfWhatIsGone: what was deleted leaves the disk with a checkpoint, though few tables are there.
func TestTablesOfWhatIsGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, "store", Options{FS: vfs.NewMem(), Inline: true, CheckpointBytes: 64 << 10})
	fill(t, s, 10_000)
	require.NoError(t, s.Checkpoint(ctx))
	require.Greater(t, room(s.index.base.tables), int64(100<<10))
	kept := room(s.index.base.tables)
	write(t, s, "key000001", "changed")
	require.NoError(t, s.Checkpoint(ctx))
	require.GreaterOrEqual(t, room(s.index.base.tables), kept, "all of it is there")
	tx := s.Begin(kv.Options{})
	tx.ClearRange(kv.Range{Begin: []byte("key000002"), End: []byte("z")})
	commit(t, tx)
	require.NoError(t, s.Checkpoint(ctx))
	require.Less(t, room(s.index.base.tables), int64(2<<10))
	require.Len(t, contents(t, s), 2)
	require.NoError(t, s.Close())
}

// TestTablesOfWhatIsGoneGoByThemselves, if hardly anything is written, once no transaction reads what was there.
func TestTablesOfWhatIsGoneGoByThemselves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, "store", Options{FS: vfs.NewMem(), Inline: true, CheckpointBytes: 1 << 20})
	fill(t, s, 10_000)
	require.NoError(t, s.Checkpoint(ctx))
	kept, before := room(s.index.base.tables), s.checkpoints.Load()
	require.Greater(t, kept, int64(1<<20))
	s.freeTables(ctx)
	require.Equal(t, kept, room(s.index.base.tables), "it is all there")
	require.Equal(t, before, s.checkpoints.Load())
	tx := s.Begin(kv.Options{})
	tx.ClearRange(kv.Range{Begin: []byte("key000002"), End: []byte("z")})
	commit(t, tx)
	for range 3 { // a store without goroutines leaves its last versions to the next checkpoint
		write(t, s, "key000001", "changed")
		s.freeTables(ctx)
	}
	require.Less(t, room(s.index.base.tables), int64(2<<10))
	require.Len(t, contents(t, s), 2)
	before = s.checkpoints.Load()
	write(t, s, "key000001", "changed")
	s.freeTables(ctx)
	require.Equal(t, before, s.checkpoints.Load())
	require.NoError(t, s.Close())
}

// TestTablesByChance compares a store that writes a checkpoint every few commits, merges
// tables, is closed and killed, with a map, now and as of a while ago; and its tables, after a
// checkpoint that no reader holds back.
func TestTablesByChance(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]int64{"in memory": 1 << 30, "some on disk": 4 << 10, "all on disk": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tablesByChance(t, memory)
		})
	}
}

func tablesByChance(t *testing.T, memory int64) {
	ctx, seed := context.Background(), rand.Uint64()
	t.Logf("seed %d", seed)
	p := newProgram(t, seed, Options{SegmentSize: 2 << 10, CheckpointBytes: 3 << 10, LargeValue: 200, Memory: memory})
	for step := range p.steps(600) {
		p.commit()
		switch p.chance.IntN(30) {
		case 0:
			require.NoError(t, p.store.Checkpoint(ctx))
			if p.old == nil {
				rows, _ := tableRows(t, p.store)
				require.Equal(t, p.want, rows, "tables after step %d", step)
			}
		case 1:
			p.reopen()
		case 2, 3:
			p.remember()
		case 4:
			p.forget()
		}
		p.check(step)
	}
	p.forget()
}

// program is random commits to a store, beside a map with what it must have.
type program struct {
	t       *testing.T
	chance  *rand.Rand
	clock   *clock.Virtual
	options Options
	store   *Store
	// window is where the keys begin that are written now.
	window int
	want   map[string]string
	// old reads what was there before.
	old    kv.Tx
	before map[string]string
}

func newProgram(t *testing.T, seed uint64, o Options) *program {
	p := &program{t: t, chance: rand.New(rand.NewPCG(seed, 0)), clock: clock.NewVirtual(time.Unix(1_900_000_000, 0)),
		options: o, want: map[string]string{}}
	p.options.FS, p.options.Inline, p.options.HistoryVersions, p.options.Clock = vfs.NewMem(), true, 4, p.clock
	p.store = open(t, "store", p.options)
	return p
}

// steps are few, or 20 times as many in a long run. The store's clock goes on by 10 ms with each, so that no
// transaction is too old however slow the machine is.
func (p *program) steps(few int) iter.Seq[int] {
	if os.Getenv("FUTURA_LONG") == "1" {
		few *= 20
	}
	return func(yield func(int) bool) {
		for step := 0; step < few && yield(step); step++ {
			p.clock.Advance(10 * time.Millisecond)
		}
	}
}

// programKeys is how many keys there are, and programWindow how many of them are written for a
// while.
const programKeys, programWindow = 400, 60

func (p *program) key() string {
	if p.chance.IntN(4) == 0 {
		return fmt.Sprintf("key%03d", p.chance.IntN(programKeys))
	}
	return p.writeKey()
}

func (p *program) writeKey() string {
	return fmt.Sprintf("key%03d", (p.window+p.chance.IntN(programWindow))%programKeys)
}

func (p *program) commit() {
	if p.chance.IntN(20) == 0 {
		p.window = p.chance.IntN(programKeys)
	}
	tx := p.store.Begin(kv.Options{})
	for range 1 + p.chance.IntN(4) {
		key := p.writeKey()
		switch p.chance.IntN(10) {
		case 0, 1:
			tx.Clear([]byte(key))
			delete(p.want, key)
		case 2:
			first := (p.window + p.chance.IntN(programWindow)) % programKeys
			key, end := fmt.Sprintf("key%03d", first), fmt.Sprintf("key%03d", first+p.chance.IntN(12))
			if p.chance.IntN(20) == 0 {
				key, end = "", "\xff"
			}
			tx.ClearRange(kv.Range{Begin: []byte(key), End: []byte(end)})
			maps.DeleteFunc(p.want, func(k, _ string) bool { return key <= k && k < end })
		case 3:
			tx.Atomic(kv.ByteMax, []byte(key), []byte("8"))
			p.want[key] = max(p.want[key], "8")
		default:
			value := hex.EncodeToString(random(p.chance.IntN(20)))
			if p.chance.IntN(5) == 0 {
				value = hex.EncodeToString(random(p.chance.IntN(300)))
			}
			tx.Set([]byte(key), []byte(value))
			p.want[key] = value
		}
	}
	commit(p.t, tx)
}

// reopen closes the store, or kills it.
func (p *program) reopen() {
	p.forget()
	if p.chance.IntN(2) == 0 {
		require.NoError(p.t, p.store.Close())
	} else {
		p.options.FS = copyOf(p.t, p.options.FS.(*vfs.MemFS))
	}
	p.store = open(p.t, "store", p.options)
}

func (p *program) remember() {
	p.forget()
	p.old, p.before = p.store.Begin(kv.Options{}), maps.Clone(p.want)
	_, err := p.old.ReadVersion(context.Background())
	require.NoError(p.t, err)
}

func (p *program) forget() {
	if p.old != nil {
		p.old.Cancel()
	}
	p.old = nil
}

func (p *program) check(step int) {
	ctx, key := context.Background(), p.key()
	require.Equal(p.t, p.want[key], string(read(p.t, p.store, key)), "%s after step %d", key, step)
	if step%10 == 0 {
		require.Equal(p.t, p.want, contents(p.t, p.store), "after step %d", step)
		p.count()
	}
	p.page(p.store.Begin(kv.Options{}), p.want)
	if p.old == nil {
		return
	}
	got, err := p.old.Get([]byte(key)).Wait(ctx)
	require.NoError(p.t, err)
	require.Equal(p.t, p.before[key], string(got), "%s as of before step %d", key, step)
	p.page(p.old, p.before)
}

// count compares what the store says it has with what it has, if it knows all of it.
func (p *program) count() {
	if len(p.store.index.cold.ranges) > 0 {
		return
	}
	size := 0
	for key, value := range p.want {
		size += len(key) + len(value)
	}
	require.EqualValues(p.t, size, p.store.Stats().Bytes)
	require.EqualValues(p.t, len(p.want), p.store.Stats().Keys)
}

// page reads rows of a range with a transaction, which sometimes has written there.
func (p *program) page(tx kv.Tx, want map[string]string) {
	begin, end := p.key(), p.key()
	if p.chance.IntN(3) == 0 {
		begin, end = "", "\xff"
	}
	if begin > end {
		begin, end = end, begin
	}
	want = maps.Clone(want)
	if tx != p.old {
		defer tx.Cancel()
		for range p.chance.IntN(3) {
			mine, gone := p.key(), p.key()
			tx.Set([]byte(mine), []byte("mine"))
			want[mine] = "mine"
			tx.Clear([]byte(gone))
			delete(want, gone)
		}
	}
	o := kv.RangeOptions{Limit: p.chance.IntN(12), Reverse: p.chance.IntN(2) == 0}
	page, err := tx.GetRange(kv.Range{Begin: []byte(begin), End: []byte(end)}, o).Wait(context.Background())
	require.NoError(p.t, err)
	maps.DeleteFunc(want, func(key, _ string) bool { return key < begin || key >= end })
	keys := append([]string{}, slices.Sorted(maps.Keys(want))...)
	if o.Reverse {
		slices.Reverse(keys)
	}
	if o.Limit > 0 {
		keys = keys[:min(len(keys), o.Limit)]
	}
	got := []string{}
	for _, item := range page.Items {
		got = append(got, string(item.Key))
		require.Equal(p.t, want[string(item.Key)], string(item.Value))
	}
	require.Equal(p.t, keys, got)
}

// TestDirectoryOfAnOlderFormat has one table of all rows, and a log that repeats some of
// them.
func TestDirectoryOfAnOlderFormat(t *testing.T) {
	t.Parallel()
	ctx, disk := context.Background(), vfs.NewMem()
	o := Options{FS: disk, Inline: true}
	s := open(t, "store", o)
	for i := range 20 {
		write(t, s, fmt.Sprintf("key%02d", i), "from the log")
	}
	write(t, s, "table1", "")
	tx := s.Begin(kv.Options{})
	tx.Clear([]byte("key07"))
	tx.Clear([]byte("table1"))
	commit(t, tx)
	require.NoError(t, s.Close())
	d := directory{fs: disk, path: "store"}
	w, err := newTableWriter(d, 99)
	require.NoError(t, err)
	for _, key := range []string{"key05", "key07", "table0", "table1"} {
		require.NoError(t, w.add(entry{key: []byte(key), value: []byte("from the table")}))
	}
	table, err := w.finish(nil)
	require.NoError(t, err)
	require.NoError(t, table.reader.Close())
	m, err := d.manifest()
	require.NoError(t, err)
	m.Format, m.NextFile, m.Checkpoint = 2, 100, &singleTable{tableFile: table.tableFile, Until: 2}
	require.NoError(t, d.install(m))
	want := map[string]string{"table0": "from the table"}
	for i := range 20 {
		want[fmt.Sprintf("key%02d", i)] = "from the log"
	}
	delete(want, "key07")
	for i := range 4 {
		s := open(t, "store", o)
		require.Equal(t, want, contents(t, s), "opening %d", i)
		if i > 0 {
			key := fmt.Sprint("opening", i)
			want[key] = ""
			write(t, s, key, "")
		}
		if i == 2 {
			require.NoError(t, s.Checkpoint(ctx))
			rows, _ := tableRows(t, s)
			require.Equal(t, want, rows)
		}
		m, err := d.manifest()
		require.NoError(t, err)
		require.Equal(t, []int{2, formatVersion}[min(i, 1)], m.Format)
		require.NoError(t, s.Close())
	}
}
