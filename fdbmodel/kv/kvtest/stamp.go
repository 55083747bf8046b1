package kvtest

import (
	"encoding/binary"
	"math"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func stampCases() []testCase {
	return []testCase{
		{name: "Stamp/IsWhatCommitReturns", exact: true, run: stampIsReturned},
		{name: "Stamp/FollowsCommitOrder", run: stampOrder},
		{name: "Stamp/Offsets", exact: true, run: stampOffsets},
		{name: "Stamp/BadOffsets", exact: true, run: stampBadOffsets},
		{name: "Stamp/KeysAreUnreadable", run: stampUnreadableKeys},
		{name: "Stamp/ValuesAreUnreadable", run: stampUnreadableValues},
		{name: "Stamp/UnreadablePoisons", exact: true, run: stampUnreadablePoisons},
		{name: "Stamp/LimitBeforeUnreadable", run: stampLimit},
		{name: "Stamp/ClearedIsReadable", run: stampCleared},
		{name: "Stamp/LaterClearWins", run: stampThenClear},
	}
}

// blank holds the place of a stamp.
const blank = "0123456789"

// stampKey sets a key that begins with name and ends with a stamp.
func (b *bundle) stampKey(tx kv.Tx, name, value string) {
	tx.SetVersionstampedKey(b.key(name+blank), len(b.prefix)+len(name), []byte(value))
}

func stampIsReturned(b *bundle) {
	tx := b.begin()
	b.stampKey(tx, "k", "v")
	tx.SetVersionstampedValue(b.key("v"), []byte("<"+blank+">"), 1)
	done := b.commit(tx)
	require.Positive(b, done.Version)
	require.Equal(b, uint64(done.Version), binary.BigEndian.Uint64(done.Stamp[:8]))
	require.Equal(b, "v=<"+string(done.Stamp[:])+">", b.scan("v", ""))
	require.Equal(b, "k"+string(done.Stamp[:])+"=v", b.scan("k", "l"))
}

func stampOrder(b *bundle) {
	names := []string{"z", "y", "x", "w", "v"}
	for _, name := range names {
		b.once(func(tx kv.Tx) error {
			b.stampKey(tx, "s", name)
			return nil
		})
	}
	var order []string
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		order = nil
		page, err := a.GetRange(b.span("s", "t"), kv.RangeOptions{}).Wait(b.ctx)
		for _, item := range page.Items {
			order = append(order, string(item.Value))
		}
		return err
	})
	require.NoError(b, err)
	require.Equal(b, names, order)
}

func stampOffsets(b *bundle) {
	tx := b.begin()
	tx.SetVersionstampedKey(b.key(blank), len(b.prefix), []byte("whole"))
	tx.SetVersionstampedKey(b.key("a"+blank+"z"), len(b.prefix)+1, []byte("inside"))
	tx.SetVersionstampedValue(b.key("b"), []byte(blank), 0)
	tx.SetVersionstampedValue(b.key("c"), []byte("abc"+blank), 3)
	done := b.commit(tx)
	stamp := string(done.Stamp[:])
	require.Equal(b, "whole", b.get(stamp))
	require.Equal(b, "inside", b.get("a"+stamp+"z"))
	require.Equal(b, stamp, b.get("b"))
	require.Equal(b, "abc"+stamp, b.get("c"))
}

func stampBadOffsets(b *bundle) {
	for _, offset := range []int{-1, 1, 10, 11, math.MaxInt32, math.MinInt32, 1 << 40, math.MaxInt, math.MinInt} {
		tx := b.begin()
		tx.SetVersionstampedValue(b.key("v"), []byte(blank), offset)
		_, err := tx.Commit(b.ctx)
		require.ErrorIs(b, err, kv.ErrBadStampOffset, "value, offset %d", offset)
	}
	key := b.key(blank)
	for _, offset := range []int{-1, len(b.prefix) + 1, len(key), math.MaxInt32, 1 << 40, math.MaxInt, math.MinInt} {
		tx := b.begin()
		tx.SetVersionstampedKey(key, offset, nil)
		_, err := tx.Commit(b.ctx)
		require.ErrorIs(b, err, kv.ErrBadStampOffset, "key, offset %d", offset)
	}
	tx := b.begin()
	tx.SetVersionstampedValue(b.key("v"), []byte("short"), 0)
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrBadStampOffset)
	require.Equal(b, "", b.scan("", ""))
}

func stampUnreadableKeys(b *bundle) {
	b.put("r", "t")
	unreadable := kv.ErrUnreadable.Error()
	late := string([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	b.expect(func(p *probe) {
		b.stampKey(p, "s", "v")
		p.get("s" + late)
		p.scan("", "", kv.RangeOptions{})
		p.scan("", "", kv.RangeOptions{Reverse: true})
		p.scanFrom(p.Snapshot(), "s", "t", kv.RangeOptions{})
		p.getFrom(p.Snapshot(), "s"+late)
	}, unreadable, unreadable, unreadable, unreadable, unreadable)
	b.expect(func(p *probe) {
		b.stampKey(p, "s", "v")
		p.get("r")
		p.scan("", "s", kv.RangeOptions{})
		p.scan("t", "", kv.RangeOptions{})
		p.set("u", "own")
		p.scan("t", "", kv.RangeOptions{})
	}, "r=r", "r=r", "t=t", "t=t u=own")
}

func stampUnreadableValues(b *bundle) {
	b.put("a", "b", "c")
	unreadable := kv.ErrUnreadable.Error()
	b.expect(func(p *probe) {
		p.SetVersionstampedValue(b.key("b"), []byte(blank), 0)
		p.get("b")
		p.getFrom(p.Snapshot(), "b")
		p.scan("", "", kv.RangeOptions{})
		p.get("a")
		p.scan("b\x00", "", kv.RangeOptions{})
		p.scan("", "b", kv.RangeOptions{Reverse: true})
	}, unreadable, unreadable, unreadable, "a=a", "c=c", "a=a")
}

// stampUnreadablePoisons reads what can't be read, and commits.
func stampUnreadablePoisons(b *bundle) {
	for name, read := range map[string]func(kv.Reader) error{
		"key": func(tx kv.Reader) error {
			_, err := tx.Get(b.key("v")).Wait(b.ctx)
			return err
		},
		"range": func(tx kv.Reader) error {
			_, err := tx.GetRange(kv.Range{Begin: b.key("u"), End: b.key("w")}, kv.RangeOptions{}).Wait(b.ctx)
			return err
		},
	} {
		for _, snapshot := range []bool{false, true} {
			tx := b.begin()
			tx.SetVersionstampedValue(b.key("v"), []byte(blank), 0)
			reader := kv.Reader(tx)
			if snapshot {
				reader = tx.Snapshot()
			}
			require.ErrorIs(b, read(reader), kv.ErrUnreadable, "%s, snapshot %v", name, snapshot)
			_, err := tx.Commit(b.ctx)
			require.ErrorIs(b, err, kv.ErrUnreadable, "%s, snapshot %v", name, snapshot)
			require.Equal(b, "", b.scan("", ""))
		}
	}
}

func stampLimit(b *bundle) {
	b.put("a", "b", "y", "z")
	b.expect(func(p *probe) {
		b.stampKey(p, "s", "v")
		p.scan("", "", kv.RangeOptions{Limit: 2})
		p.scan("", "", kv.RangeOptions{Limit: 2, Reverse: true})
		p.scan("", "", kv.RangeOptions{Limit: 3})
		p.scan("", "", kv.RangeOptions{Limit: 3, Reverse: true})
	}, "a=a b=b ...", "z=z y=y ...", kv.ErrUnreadable.Error(), kv.ErrUnreadable.Error())
}

func stampCleared(b *bundle) {
	b.expect(func(p *probe) {
		b.stampKey(p, "s", "v")
		p.SetVersionstampedValue(b.key("b"), []byte(blank), 0)
		p.ClearRange(b.span("s", "t"))
		p.Clear(b.key("b"))
		p.get("b")
		p.scan("", "", kv.RangeOptions{})
		p.set("b", "own")
		p.scan("", "", kv.RangeOptions{})
	}, "b=<absent>", "", "b=own")
}

func stampThenClear(b *bundle) {
	b.update(func(tx kv.Tx) {
		b.stampKey(tx, "s", "first")
		tx.SetVersionstampedValue(b.key("v"), []byte(blank), 0)
		tx.SetVersionstampedValue(b.key("w"), []byte(blank), 0)
		tx.ClearRange(b.span("s", "t"))
		tx.Clear(b.key("v"))
		tx.Set(b.key("w"), []byte("set"))
	})
	require.Equal(b, "w=set", b.scan("", ""))
}
