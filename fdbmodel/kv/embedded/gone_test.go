package embedded

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// walked returns how many rows a walk at a version visits, and those that it sees.
func walked(x *index, v kv.Version, reverse bool) (visits int, keys []string) {
	c := &cursor{index: x, version: v, reverse: reverse, begin: []byte{}, end: []byte{0xff}}
	for c.next(func(key []byte, r ref, _ bool) bool {
		if visits++; r != 0 {
			keys = append(keys, string(key))
		}
		return true
	}) {
	}
	return visits, keys
}

// TestWalksPassOverWhatIsGone takes most of a queue away while its versions are kept.
func TestWalksPassOverWhatIsGone(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		const rows, left = 10_000, 10
		var x index
		x.init(4<<10, 0)
		key := func(i int) []byte {
			if reverse {
				i = rows - 1 - i
			}
			return fmt.Appendf(nil, "key%06d", i)
		}
		for i := range rows {
			x.set(fmt.Appendf(nil, "key%06d", i), nil, 1)
		}
		for i := range rows - left {
			x.clear(key(i), 2)
		}
		visits, keys := walked(&x, 2, reverse)
		require.Equal(t, rows, visits)
		require.Len(t, keys, left)
		visits, again := walked(&x, 2, reverse)
		require.Less(t, visits, 100, "what was found gone is passed over")
		require.Equal(t, keys, again)
		_, old := walked(&x, 1, reverse)
		require.Len(t, old, rows, "a reader of a version from before sees it")

		x.set(key(17), []byte("again"), 3)
		_, keys = walked(&x, 3, reverse)
		require.Len(t, keys, left+1)
		require.Equal(t, string(key(17)), keys[0])
		_, keys = walked(&x, 2, reverse)
		require.Len(t, keys, left)
		x.collect(3)
		_, keys = walked(&x, 3, reverse)
		require.Len(t, keys, left+1)
	}
}

// TestAWalkThatSawPartOfALeafLeavesIt walks over the end of a leaf whose rows are gone there
// alone, and over one whose rows came after the version that it reads at.
func TestAWalkThatSawPartOfALeafLeavesIt(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		const rows = 8
		var x index
		x.init(4<<10, 0)
		key := func(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }
		for i := range rows {
			x.set(key(i), nil, 1)
		}
		gone, begin, end := key(rows-1), key(rows-1), key(rows)
		if reverse {
			gone, begin, end = key(0), key(0), key(1)
		}
		x.clear(gone, 2)
		c := cursor{index: &x, version: 2, reverse: reverse, begin: begin, end: end}
		for c.next(func([]byte, ref, bool) bool { return true }) {
		}
		_, keys := walked(&x, 2, reverse)
		require.Len(t, keys, rows-1)

		var later index
		later.init(4<<10, 0)
		for i := range rows {
			later.set(key(i), nil, 2)
		}
		_, keys = walked(&later, 1, reverse)
		require.Empty(t, keys)
		_, keys = walked(&later, 2, reverse)
		require.Len(t, keys, rows)
	}
}
