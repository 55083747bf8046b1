package embedded

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// holdsPointers reports whether the garbage collector looks into values of a type.
func holdsPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case reflect.Struct:
		return slices.ContainsFunc(fields(t), func(f reflect.StructField) bool { return holdsPointers(f.Type) })
	case reflect.Pointer, reflect.Slice, reflect.String, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface,
		reflect.UnsafePointer:
		return true
	}
	return false
}

func fields(t reflect.Type) []reflect.StructField {
	var all []reflect.StructField
	for i := range t.NumField() {
		all = append(all, t.Field(i))
	}
	return all
}

// TestRowsHoldNoPointers walks over the types that the index keeps one value of
// for each row, revision or piece of garbage.
func TestRowsHoldNoPointers(t *testing.T) {
	var pointers []string
	for _, f := range fields(reflect.TypeFor[node]()) {
		if holdsPointers(f.Type) {
			pointers = append(pointers, f.Name)
		}
	}
	require.Equal(t, []string{"children", "previous", "next"}, pointers, "a node points to nodes only")
	entries, _ := reflect.TypeFor[node]().FieldByName("entries")
	require.False(t, holdsPointers(entries.Type))
	require.LessOrEqual(t, reflect.TypeFor[node]().Size(), uintptr(512))
	for _, elements := range []reflect.Type{
		reflect.TypeFor[revision]().Elem(), reflect.TypeOf(chunk{}.data).Elem(), reflect.TypeOf(index{}.garbage.items).Elem(),
	} {
		require.False(t, holdsPointers(elements), elements)
	}
	require.True(t, holdsPointers(reflect.TypeFor[[2]struct{ s string }]()), "the walk finds pointers")
}

// TestCollectorVisitsFewObjects counts what the heap has for many rows.
func TestCollectorVisitsFewObjects(t *testing.T) {
	const rows = 100_000
	objects := func() int64 {
		// Pools are emptied by the second.
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapObjects)
	}
	var x index
	x.init(4<<10, 0)
	before := objects()
	for i := range rows {
		x.set(fmt.Appendf(nil, "key%08d", i*7919%rows), make([]byte, i%300), 1)
	}
	require.Less(t, objects()-before, int64(rows/20))
	runtime.KeepAlive(&x)
}

// TestMemoryIsGivenBack deletes most rows, in an order of its own.
func TestMemoryIsGivenBack(t *testing.T) {
	const rows = 50_000
	var x index
	x.init(4<<10, 0)
	for i := range rows {
		x.set(fmt.Appendf(nil, "key%08d", i), make([]byte, 100), 1)
	}
	chunks := func() (n int) {
		for _, c := range x.arena.chunks {
			n += len(c.data)
		}
		return n
	}
	full := chunks()
	for i := range rows - 100 {
		x.clear(fmt.Appendf(nil, "key%08d", i), 2)
	}
	x.collect(2)
	require.Equal(t, 100, x.tree.size)
	require.Less(t, chunks(), full/50)
	leaves := 0
	for n := x.tree.leaf(nil); n != nil; n = n.next {
		leaves++
	}
	require.Less(t, leaves, 8)
}

// TestValueThatWasWrittenAgainInItsCommitIsNotSpilled: a checkpoint may see a
// commit between two of its writes.
func TestValueThatWasWrittenAgainInItsCommitIsNotSpilled(t *testing.T) {
	t.Parallel()
	var x index
	x.init(10, 0)
	key := []byte("key")
	x.set(key, []byte("the first value"), 7)
	var seen largeRow
	c := cursor{index: &x, version: 7, end: []byte{0xff}}
	c.next(func(_ []byte, r ref, _ bool) bool {
		seen = largeRow{key: key, revision: r, version: x.at(r).born()}
		return true
	})
	x.set(key, []byte("the second value"), 7)
	x.spillRowToTable(seen)
	require.Equal(t, "the second value", string(x.at(x.tree.get(key)).value()))
	require.Zero(t, x.tableBytes)
}

// BenchmarkIndex writes, overwrites and deletes rows that lie at random.
func BenchmarkIndex(b *testing.B) {
	for _, rows := range []int{1_000, 1_000_000} {
		var x index
		x.init(4<<10, 0)
		keys := make([][]byte, rows)
		for i := range keys {
			keys[i] = lifecycleKey(i%lifecycleShards, "futures", uint64(i), "/spec")
		}
		value := random(150)
		v := kv.Version(1)
		for _, key := range keys {
			x.set(key, value, v)
		}
		b.Run(fmt.Sprintf("set/rows=%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v++
				x.set(keys[rand.IntN(rows)], value, v)
				x.collect(v - 100)
			}
		})
		b.Run(fmt.Sprintf("clear and set/rows=%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v++
				key := keys[rand.IntN(rows)]
				x.clear(key, v)
				x.collect(v)
				x.set(key, value, v)
			}
		})
		b.Run(fmt.Sprintf("find/rows=%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				key := keys[rand.IntN(rows)]
				x.tree.get(key)
			}
		})
	}
}
