package embedded

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// modelRow is every state that a row was ever in, oldest first.
type modelRow []modelState

type modelState struct {
	version kv.Version
	value   string
	present bool
}

func (r modelRow) at(v kv.Version) (string, bool) {
	for _, s := range slices.Backward(r) {
		if s.version <= v {
			return s.value, s.present
		}
	}
	return "", false
}

// indexModel is an index, and beside it a map of all that was ever written.
type indexModel struct {
	index       index
	rows        map[string]modelRow
	last, floor kv.Version
	line        timeline
}

func newIndexModel() *indexModel {
	m := &indexModel{rows: map[string]modelRow{}, last: 1, floor: 1}
	m.index.init(200, 0)
	return m
}

func (m *indexModel) set(key, value string) {
	m.index.set([]byte(key), []byte(value), m.last)
	m.rows[key] = append(m.rows[key], modelState{m.last, value, true})
}

func (m *indexModel) clear(t require.TestingT, key string) {
	_, present := m.rows[key].at(m.last)
	require.Equal(t, present, m.index.clear([]byte(key), m.last))
	if present {
		m.rows[key] = append(m.rows[key], modelState{version: m.last})
	}
}

func (m *indexModel) clearRange(t require.TestingT, begin, end string) {
	want := m.keys(begin, end, m.last)
	removed, below := m.index.clearRange([]byte(begin), []byte(end), m.last)
	require.Equal(t, len(want), removed)
	require.False(t, below)
	for _, key := range want {
		m.rows[key] = append(m.rows[key], modelState{version: m.last})
	}
}

// keys returns those that are present in a range at v.
func (m *indexModel) keys(begin, end string, v kv.Version) []string {
	var keys []string
	for key, r := range m.rows {
		if _, present := r.at(v); present && begin <= key && key < end {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// collect raises the floor, below which nothing is read any more.
func (m *indexModel) collect(floor kv.Version) {
	m.floor = floor
	m.line.floor.Store(int64(floor))
	m.index.collect(floor)
}

func (m *indexModel) readKey(t require.TestingT, key string, v kv.Version) {
	got, err := m.index.lookup([]byte(key), v, &m.line)
	require.NoError(t, err)
	want, present := m.rows[key].at(v)
	require.Equal(t, present, got != nil)
	require.Equal(t, want, string(got))
	var seen []byte
	if present {
		seen = []byte(want)
	}
	differs, _ := m.index.differs([]byte(key), v, seen)
	require.False(t, differs)
	differs, _ = m.index.differs([]byte(key), v, []byte("something else"))
	require.True(t, differs)
	changed := kv.Version(0)
	if r := m.rows[key]; len(r) > 0 {
		changed = r[len(r)-1].version
	}
	if newest := m.index.changedKey([]byte(key), 0); changed > m.floor || newest != 0 {
		require.Equal(t, changed, newest)
	}
}

func (m *indexModel) readRange(t require.TestingT, begin, end string, v kv.Version, limit int, reverse bool) {
	c := cursor{index: &m.index, version: v, line: &m.line, reverse: reverse, begin: []byte(begin), end: []byte(end)}
	var buffer rowBuffer
	var items []kv.KeyValue
	for more := true; more && (limit == 0 || len(items) < limit); {
		var err error
		more, err = c.fetch(&buffer, limit-len(items), 0)
		require.NoError(t, err)
		items, err = buffer.appendTo(items)
		require.NoError(t, err)
	}
	want := m.keys(begin, end, v)
	if reverse {
		slices.Reverse(want)
	}
	if limit > 0 {
		want = want[:min(limit, len(want))]
	}
	require.Len(t, items, len(want))
	for i, key := range want {
		value, _ := m.rows[key].at(v)
		require.Equal(t, key, string(items[i].Key))
		require.Equal(t, value, string(items[i].Value))
	}
	changed := kv.Version(0)
	for key, r := range m.rows {
		if begin <= key && key < end {
			changed = max(changed, r[len(r)-1].version)
		}
	}
	require.Equal(t, changed > v, m.index.changed([]byte(begin), []byte(end), v) != 0)
}

// check looks at everything that must hold of the index.
func (m *indexModel) check(t require.TestingT) {
	x := &m.index
	keys, size := int64(0), int64(0)
	for key, r := range m.rows {
		if value, present := r.at(m.last); present {
			keys++
			size += int64(len(key) + len(value))
		}
	}
	require.Equal(t, keys, x.liveKeys)
	require.Equal(t, size, x.liveBytes)
	walk := treeWalk{tree: &x.tree}
	walk.node(t, x.tree.root, nil, nil)
	require.Nil(t, walk.last.next)
	require.Equal(t, walk.rows, x.tree.size)
	blocks := walk.separators
	for s := x.tree.seek(nil); !s.end(); s.next() {
		require.False(t, x.at(s.ref()).replaced())
		above := kv.Version(math.MaxInt64)
		for r := s.ref(); r != 0; r = x.at(r).older() {
			blocks++
			require.LessOrEqual(t, x.at(r).born(), above)
			require.Equal(t, r != s.ref(), x.at(r).replaced())
			above = x.at(r).born()
		}
	}
	checkArena(t, &x.arena, blocks)
}

// treeWalk goes through a tree in order.
type treeWalk struct {
	tree             *tree
	last             *node
	rows, separators int
}

// node checks a node whose keys are not less than low and less than high.
func (w *treeWalk) node(t require.TestingT, n *node, low, high []byte) {
	previous := low
	if low != nil && high != nil {
		require.Equal(t, common(low, high), n.skip)
	} else {
		require.Zero(t, n.skip)
	}
	for i, c := range n.entries[:n.count] {
		key := w.tree.key(c.ref())
		require.Equal(t, headOf(key, n.skip), c.head())
		if i > 0 || previous != nil {
			order := bytes.Compare(previous, key)
			require.True(t, order < 0 || i == 0 && order == 0 && n.children == nil, "%q before %q", previous, key)
		}
		require.True(t, high == nil || bytes.Compare(key, high) < 0)
		previous = key
	}
	if n.children == nil {
		for _, c := range n.entries[:n.count] {
			require.LessOrEqual(t, revision(w.tree.arena.at(c.ref())).version(), n.changed)
		}
		w.rows += n.count
		require.True(t, n.previous == w.last)
		require.True(t, w.last == nil || w.last.next == n)
		w.last = n
		return
	}
	w.separators += n.count
	for i, child := range n.children[:n.count+1] {
		from, to := low, high
		if i > 0 {
			from = w.tree.key(n.entries[i-1].ref())
		}
		if i < n.count {
			to = w.tree.key(n.entries[i].ref())
		}
		w.node(t, child, from, to)
	}
	for _, child := range n.children[n.count+1:] {
		require.Nil(t, child)
	}
}

// checkArena counts the blocks in use, and looks for chunks without any, of
// which a class keeps one at most.
func checkArena(t require.TestingT, a *arena, blocks int) {
	used := 0
	var empty [classes]int
	for i, c := range a.chunks {
		used += c.live
		if c.class == 0 {
			continue
		}
		require.Equal(t, c.hasRoom(), c.roomyAt >= 0)
		if c.roomyAt >= 0 {
			require.Equal(t, i, a.roomy[c.class][c.roomyAt])
		}
		if c.live == 0 {
			empty[c.class]++
			require.Equal(t, 1, empty[c.class])
		}
	}
	require.Equal(t, blocks, used)
}

// indexProgram writes and reads an index at random.
func indexProgram(t *rapid.T) {
	m := newIndexModel()
	key := rapid.OneOf(rapid.StringMatching(`[ab]{0,4}`), rapid.Map(rapid.IntRange(0, 999), modelKey))
	value := rapid.OneOf(rapid.StringN(0, 8, -1), rapid.SampledFrom([]string{"", string(make([]byte, 199)),
		string(make([]byte, 200)), string(make([]byte, 700)), string(make([]byte, 9000))}))
	version := func(t *rapid.T) kv.Version {
		return kv.Version(rapid.Int64Range(int64(m.floor), int64(m.last)).Draw(t, "version"))
	}
	bounds := func(t *rapid.T) (string, string) {
		begin, end := key.Draw(t, "begin"), key.Draw(t, "end")
		return min(begin, end), max(begin, end)
	}
	t.Repeat(map[string]func(*rapid.T){
		"commit":     func(t *rapid.T) { m.last++ },
		"set":        func(t *rapid.T) { m.set(key.Draw(t, "key"), value.Draw(t, "value")) },
		"clear":      func(t *rapid.T) { m.clear(t, key.Draw(t, "key")) },
		"clearRange": func(t *rapid.T) { begin, end := bounds(t); m.clearRange(t, begin, end) },
		"fill": func(t *rapid.T) {
			first, step := rapid.IntRange(0, 999).Draw(t, "first"), rapid.SampledFrom([]int{1, 7, -1}).Draw(t, "step")
			for i := range rapid.IntRange(1, 300).Draw(t, "count") {
				m.set(modelKey(((first+i*step)%1000+1000)%1000), "filled")
			}
		},
		"collect": func(t *rapid.T) { m.collect(version(t)) },
		"read":    func(t *rapid.T) { m.readKey(t, key.Draw(t, "key"), version(t)) },
		"range": func(t *rapid.T) {
			begin, end := bounds(t)
			m.readRange(t, begin, end, version(t), rapid.IntRange(0, 5).Draw(t, "limit"), rapid.Bool().Draw(t, "reverse"))
		},
		"": func(t *rapid.T) { m.check(t) },
	})
	m.collect(m.last)
	m.readRange(t, "", "\xff", m.last, 0, false)
	m.clearRange(t, "", "\xff")
	m.last++
	m.collect(m.last)
	m.check(t)
	require.Zero(t, m.index.tree.size)
	require.True(t, m.index.garbage.empty())
	require.Zero(t, m.index.largeBytes.Load())
}

func modelKey(i int) string { return fmt.Sprintf("some/common/prefix/%03d/%s", i, "suffixes"[:i%9]) }

// TestIndexAgainstAMapOfVersions compares the index with a naive one.
func TestIndexAgainstAMapOfVersions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, indexProgram)
}

func FuzzIndex(f *testing.F) { f.Fuzz(rapid.MakeFuzz(indexProgram)) }
