package kvtest

import (
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

// conflictCase is two transactions: mine begins and does its part, theirs runs
// from begin to commit, and mine then writes one more key and commits. The keys
// b, d and f are there before.
type conflictCase struct {
	name      string
	mine      func(*actor)
	theirs    func(*actor)
	conflicts bool
}

// actor does one side's part. Its reads are asked and waited for.
type actor struct {
	kv.Tx
	b *bundle
}

func (a *actor) get(name string) { a.getFrom(a.Tx, name) }

func (a *actor) getFrom(r kv.Reader, name string) {
	_, err := r.Get(a.b.key(name)).Wait(a.b.ctx)
	require.NoError(a.b, err)
}

func (a *actor) scan(from, to string, o kv.RangeOptions) { a.scanFrom(a.Tx, from, to, o) }

func (a *actor) scanFrom(r kv.Reader, from, to string, o kv.RangeOptions) {
	_, err := r.GetRange(a.b.span(from, to), o).Wait(a.b.ctx)
	require.NoError(a.b, err)
}

func (a *actor) set(name string) { a.Set(a.b.key(name), []byte("set")) }

func (a *actor) clear(name string) { a.Clear(a.b.key(name)) }

func (a *actor) add(name string) { a.Atomic(kv.Add, a.b.key(name), []byte{1}) }

func (a *actor) stamp(name string) {
	a.SetVersionstampedValue(a.b.key(name), make([]byte, kv.StampSize), 0)
}

// recommit commits what was done so far and goes on in a new transaction.
func (a *actor) recommit() {
	a.b.commit(a.Tx)
	a.Tx = a.b.begin()
}

func conflictCases() []testCase {
	cases := []testCase{
		{name: "Conflict/ReadOnlyCommits", exact: true, run: conflictReadOnly},
		{name: "Conflict/WriteConflictAloneCommits", exact: true, run: conflictWriteOnly},
		{name: "Conflict/WritesNothing", exact: true, run: conflictWritesNothing},
		{name: "Conflict/BeforeReadVersion", exact: true, run: conflictBefore},
	}
	for _, group := range []struct {
		name  string
		cases []conflictCase
	}{
		{"Get", getConflicts()},
		{"Range", rangeConflicts()},
		{"Limit", limitConflicts()},
		{"Own", ownConflicts()},
		{"Explicit", explicitConflicts()},
		{"Theirs", theirConflicts()},
	} {
		for _, c := range group.cases {
			cases = append(cases, testCase{
				name: "Conflict/" + group.name + "/" + c.name, exact: true, run: c.run,
			})
		}
	}
	return cases
}

func (c conflictCase) run(b *bundle) {
	b.put("b", "d", "f")
	mine := &actor{Tx: b.beginRead(), b: b}
	c.mine(mine)
	theirs := &actor{Tx: b.begin(), b: b}
	c.theirs(theirs)
	b.commit(theirs.Tx)
	mine.Set(b.key("\xffdone"), nil)
	done, err := mine.Commit(b.ctx)
	if c.conflicts {
		require.ErrorIs(b, err, kv.ErrConflict)
		require.Equal(b, "<absent>", b.get("\xffdone"))
		return
	}
	require.NoError(b, err)
	require.Positive(b, done.Version)
	require.Empty(b, b.get("\xffdone"))
}

func conflictReadOnly(b *bundle) {
	tx := b.beginRead()
	_, err := tx.GetRange(b.span("", ""), kv.RangeOptions{}).Wait(b.ctx)
	require.NoError(b, err)
	tx.AddReadConflictKey(b.key("a"))
	b.put("a")
	done := b.commit(tx)
	require.Equal(b, kv.Committed{Version: kv.NoVersion}, done)
}

func conflictWriteOnly(b *bundle) {
	reader := b.beginRead()
	reader.AddReadConflictKey(b.key("m"))
	reader.Set(b.key("out"), nil)
	tx := b.begin()
	tx.AddWriteConflictRange(b.span("l", "n"))
	require.Positive(b, b.commit(tx).Version)
	_, err := reader.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrConflict)
}

func conflictWritesNothing(b *bundle) {
	b.put("a")
	tx := b.begin()
	_, err := tx.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	tx.Set(b.key("x"), []byte("lost"))
	tx.ClearRange(b.span("a", "b"))
	tx.Atomic(kv.Add, b.key("y"), []byte{1})
	tx.SetVersionstampedKey(b.key("s0123456789"), len(b.prefix)+1, nil)
	b.update(func(tx kv.Tx) { tx.Set(b.key("a"), []byte("kept")) })
	_, err = tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrConflict)
	require.Equal(b, "a=kept", b.scan("", ""))
}

func conflictBefore(b *bundle) {
	b.put("a")
	tx := b.begin()
	b.put("a")
	_, err := tx.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	tx.Set(b.key("out"), nil)
	b.commit(tx)
}

func getConflicts() []conflictCase {
	getB := func(a *actor) { a.get("b") }
	getC := func(a *actor) { a.get("c") }
	return []conflictCase{
		{"Changed", getB, func(a *actor) { a.set("b") }, true},
		{"Cleared", getB, func(a *actor) { a.clear("b") }, true},
		{"Rewritten", getB, func(a *actor) { a.Set(a.b.key("b"), []byte("b")) }, true},
		{"ClearedAndSetAgain", getB, func(a *actor) { a.clear("b"); a.recommit(); a.Set(a.b.key("b"), []byte("b")) }, true},
		{"AbsentInserted", getC, func(a *actor) { a.set("c") }, true},
		{"AbsentCleared", getC, func(a *actor) { a.clear("c") }, true},
		{"InsertedAndCleared", getC, func(a *actor) { a.set("c"); a.recommit(); a.clear("c") }, true},
		{"Other", getB, func(a *actor) { a.set("c"); a.set("a"); a.set("b\x00") }, false},
		{"Snapshot", func(a *actor) { a.getFrom(a.Snapshot(), "b") }, func(a *actor) { a.set("b") }, false},
		{"NotWaitedFor", func(a *actor) { a.Get(a.b.key("b")) }, func(a *actor) { a.set("b") }, true},
		{"BlindSet", func(a *actor) { a.set("b") }, func(a *actor) { a.set("b") }, false},
		{"BlindClear", func(a *actor) { a.ClearRange(a.b.span("", "")) }, func(a *actor) { a.set("b") }, false},
		{"BlindAdd", func(a *actor) { a.add("b") }, func(a *actor) { a.add("b") }, false},
		{"Watched", func(a *actor) { a.Watch(a.b.key("b")) }, func(a *actor) { a.set("b") }, true},
		{"OneOfMany", func(a *actor) { a.get("a"); a.get("x"); a.get("b"); a.get("z") },
			func(a *actor) { a.set("b") }, true},
	}
}

func rangeConflicts() []conflictCase {
	whole := func(a *actor) { a.scan("b", "f", kv.RangeOptions{}) }
	back := func(a *actor) { a.scan("b", "f", kv.RangeOptions{Reverse: true}) }
	hollow := func(a *actor) { a.scan("m", "p", kv.RangeOptions{}) }
	return []conflictCase{
		{"PhantomInside", whole, func(a *actor) { a.set("c") }, true},
		{"PhantomAtBegin", hollow, func(a *actor) { a.set("m") }, true},
		{"PhantomAtEnd", hollow, func(a *actor) { a.set("p") }, false},
		{"PhantomLast", hollow, func(a *actor) { a.set("o\xff\xff") }, true},
		{"BeforeBegin", whole, func(a *actor) { a.set("a\xff") }, false},
		{"AtEnd", whole, func(a *actor) { a.set("f"); a.clear("f") }, false},
		{"RowChanged", whole, func(a *actor) { a.set("d") }, true},
		{"RowCleared", whole, func(a *actor) { a.clear("b") }, true},
		{"RangeClearedInside", whole, func(a *actor) { a.ClearRange(a.b.span("cc", "cd")) }, true},
		{"RangeClearedAcross", whole, func(a *actor) { a.ClearRange(a.b.span("a", "b\x00")) }, true},
		{"RangeClearedBeside", whole, func(a *actor) { a.ClearRange(a.b.span("", "b")) }, false},
		{"BackwardsPhantom", back, func(a *actor) { a.set("b\x00") }, true},
		{"BackwardsAtEnd", back, func(a *actor) { a.set("f") }, false},
		{"Snapshot", func(a *actor) { a.scanFrom(a.Snapshot(), "", "", kv.RangeOptions{}) },
			func(a *actor) { a.set("c") }, false},
		{"Empty", func(a *actor) { a.scan("b", "b", kv.RangeOptions{}) }, func(a *actor) { a.set("b") }, false},
		{"NotWaitedFor", func(a *actor) { a.GetRange(a.b.span("b", "f"), kv.RangeOptions{}) },
			func(a *actor) { a.set("c") }, true},
	}
}

func limitConflicts() []conflictCase {
	two := func(a *actor) { a.scan("a", "z", kv.RangeOptions{Limit: 2}) }
	three := func(a *actor) { a.scan("a", "z", kv.RangeOptions{Limit: 3}) }
	four := func(a *actor) { a.scan("a", "z", kv.RangeOptions{Limit: 4}) }
	back := func(a *actor) { a.scan("a", "z", kv.RangeOptions{Limit: 2, Reverse: true}) }
	set := func(name string) func(*actor) { return func(a *actor) { a.set(name) } }
	return []conflictCase{
		{"BeyondLast", two, set("d\x00"), false},
		{"FarBeyondLast", two, set("f"), false},
		{"Last", two, set("d"), true},
		{"BeforeLast", two, set("c"), true},
		{"BeforeFirst", two, set("a"), true},
		{"BeyondExactEnd", three, set("g"), false},
		{"NotReached", four, set("g"), true},
		{"BackwardsBeyondLast", back, set("c\xff"), false},
		{"BackwardsLast", back, set("d"), true},
		{"BackwardsBeforeLast", back, set("e"), true},
		{"BackwardsBeforeFirst", back, set("y"), true},
		{"BackwardsBeforeFirstOutside", back, set("z"), false},
		{"ClearBeyondLast", two, func(a *actor) { a.ClearRange(a.b.span("d\x00", "z")) }, false},
		{"SecondPage", func(a *actor) { two(a); a.scan("d\x00", "z", kv.RangeOptions{Limit: 1}) }, set("e"), true},
		{"SecondPageBeyond", func(a *actor) { two(a); a.scan("d\x00", "z", kv.RangeOptions{Limit: 1}) }, set("g"), false},
	}
}

func ownConflicts() []conflictCase {
	set := func(name string) func(*actor) { return func(a *actor) { a.set(name) } }
	getB := func(a *actor) { a.get("b") }
	scan := func(a *actor) { a.scan("a", "g", kv.RangeOptions{}) }
	first := func(a *actor) { a.scan("a", "g", kv.RangeOptions{Limit: 1}) }
	after := func(parts ...func(*actor)) func(*actor) {
		return func(a *actor) {
			for _, part := range parts {
				part(a)
			}
		}
	}
	add := func(a *actor) { a.add("b") }
	clearB := func(a *actor) { a.clear("b") }
	return []conflictCase{
		{"SetThenGet", after(set("b"), getB), set("b"), false},
		{"ClearThenGet", after(clearB, getB), set("b"), false},
		{"ClearRangeThenGet", after(func(a *actor) { a.ClearRange(a.b.span("a", "c")) }, getB), set("b"), false},
		{"GetThenSet", after(getB, set("b")), set("b"), true},
		{"AddThenGet", after(add, getB), set("b"), true},
		{"AddThenSnapshot", after(add, func(a *actor) { a.getFrom(a.Snapshot(), "b") }), set("b"), false},
		{"SetThenAddThenGet", after(set("b"), add, getB), set("b"), false},
		{"ClearThenAddThenGet", after(clearB, add, getB), set("b"), false},
		{"AddThenSetThenGet", after(add, set("b"), getB), set("b"), false},
		{"AddThenClearThenGet", after(add, clearB, getB), set("b"), false},
		{"SetThenScanThenOther", after(set("b"), scan), set("c"), true},
		{"SetThenScan", after(set("b"), scan), set("b"), false},
		{"AddThenScan", after(add, scan), set("b"), true},
		{"ClearRangeThenScan", after(func(a *actor) { a.ClearRange(a.b.span("a", "g")) }, scan), set("d"), false},
		{"ClearPartThenScan", after(func(a *actor) { a.ClearRange(a.b.span("a", "d")) }, scan), set("d"), true},
		{"ClearPartThenScanInside", after(func(a *actor) { a.ClearRange(a.b.span("a", "d")) }, scan), set("c"), false},
		{"LimitEndsAtOwnRow", after(set("a"), first), set("b"), false},
		{"LimitEndsAtOwnRowBeyond", after(set("a"), first), set("a\x00"), false},
		{"LimitEndsAtOwnRowBefore", after(set("ab"), first), set("aa"), true},
		{"LimitSkipsOwnClear", after(clearB, first), set("b"), false},
		{"LimitSkipsOwnClearBetween", after(clearB, first), set("c"), true},
		{"LimitSkipsOwnClearBeyond", after(clearB, first), set("e"), false},
	}
}

func explicitConflicts() []conflictCase {
	set := func(name string) func(*actor) { return func(a *actor) { a.set(name) } }
	key := func(a *actor) { a.AddReadConflictKey(a.b.key("b")) }
	span := func(a *actor) { a.AddReadConflictRange(a.b.span("b", "d")) }
	stampInB := func(a *actor) { a.b.stampKey(a.Tx, "b", "") }
	inB := "b" + strings.Repeat("\xff", kv.StampSize)
	return []conflictCase{
		{"Key", key, set("b"), true},
		{"KeyBeside", key, set("b\x00"), false},
		{"Range", span, set("c"), true},
		{"RangeBegin", span, set("b"), true},
		{"RangeEnd", span, set("d"), false},
		{"EmptyRange", func(a *actor) { a.AddReadConflictRange(a.b.span("b", "b")) }, set("b"), false},
		{"KeyThenOwnSet", func(a *actor) { key(a); a.set("b") }, set("b"), true},
		{"KeyThenOwnClear", func(a *actor) { key(a); a.clear("b") }, set("b"), true},
		{"RangeThenOwnClear", func(a *actor) { span(a); a.ClearRange(a.b.span("a", "z")) }, set("c"), true},
		{"OwnAddThenKey", func(a *actor) { a.add("b"); key(a) }, set("b"), true},
		{"OwnSetBesideThenRange", func(a *actor) { a.set("b"); span(a) }, set("b\x00"), true},
		{"OwnSetThenKey", func(a *actor) { a.set("b"); key(a) }, set("b"), false},
		{"OwnClearThenKey", func(a *actor) { a.clear("b"); key(a) }, set("b"), false},
		{"OwnClearRangeThenKey", func(a *actor) { a.ClearRange(a.b.span("a", "c")); key(a) }, set("b"), false},
		{"OwnClearThenAddThenKey", func(a *actor) { a.clear("b"); a.add("b"); key(a) }, set("b"), false},
		{"OwnStampedValueThenKey", func(a *actor) { a.stamp("b"); key(a) }, set("b"), false},
		{"OwnStampedValueThenAddThenKey", func(a *actor) { a.stamp("b"); a.add("b"); key(a) }, set("b"), false},
		{"OwnSetThenRange", func(a *actor) { a.set("b"); span(a) }, set("b"), false},
		{"OwnClearPartThenRange", func(a *actor) { a.ClearRange(a.b.span("a", "c")); span(a) }, set("b"), false},
		{"OwnClearPartThenRangeBeside", func(a *actor) { a.ClearRange(a.b.span("a", "c")); span(a) }, set("c"), true},
		{"OwnClearThenStampedKeyThenRange", func(a *actor) { a.ClearRange(a.b.span("a", "c")); stampInB(a); span(a) },
			set(inB), true},
		{"OwnClearThenStampedKeyThenRangeBeside", func(a *actor) { a.ClearRange(a.b.span("a", "c")); stampInB(a); span(a) },
			set("b"), false},
		{"OwnSetThenStampedKeyThenRange", func(a *actor) { a.set(inB); stampInB(a); span(a) }, set(inB), true},
		{"OwnStampedKeyThenSetThenRange", func(a *actor) { stampInB(a); a.set(inB); span(a) }, set(inB), false},
		{"OwnStampedKeyThenClearThenRange", func(a *actor) { stampInB(a); a.ClearRange(a.b.span("a", "c")); span(a) },
			set(inB), false},
		{"OwnClearThenStampedKeyThenAddThenRange",
			func(a *actor) { a.ClearRange(a.b.span("a", "c")); stampInB(a); a.add(inB); span(a) }, set(inB), true},
		{"KeyThenOwnSetThenKey", func(a *actor) { key(a); a.set("b"); key(a) }, set("b"), true},
		{"RangeNotWritten", func(a *actor) { span(a); a.set("b") }, set("d"), false},
		{"SnapshotWithKey", func(a *actor) { a.scanFrom(a.Snapshot(), "", "", kv.RangeOptions{}); key(a) }, set("b"), true},
		{"SnapshotWithKeyBeside", func(a *actor) { a.scanFrom(a.Snapshot(), "", "", kv.RangeOptions{}); key(a) },
			set("c"), false},
	}
}

func theirConflicts() []conflictCase {
	getB := func(a *actor) { a.get("b") }
	getN := func(a *actor) { a.get("n") }
	stamps := func(a *actor) { a.scan("s", "t", kv.RangeOptions{}) }
	stampedKey := func(a *actor) {
		a.SetVersionstampedKey(a.b.key("s0123456789"), len(a.b.prefix)+1, nil)
	}
	return []conflictCase{
		{"Add", getB, func(a *actor) { a.add("b") }, true},
		{"CompareAndClearOfNothing", getB, func(a *actor) { a.Atomic(kv.CompareAndClear, a.b.key("b"), []byte("?")) }, true},
		{"ClearOfEmptySpace", getN, func(a *actor) { a.ClearRange(a.b.span("m", "p")) }, true},
		{"ClearBesideEmptySpace", getN, func(a *actor) { a.ClearRange(a.b.span("n\x00", "p")) }, false},
		{"ClearOfNoRange", getB, func(a *actor) { a.ClearRange(a.b.span("b", "b")) }, false},
		{"WriteConflictKey", getB, func(a *actor) { a.AddWriteConflictKey(a.b.key("b")) }, true},
		{"WriteConflictKeyBeside", getB, func(a *actor) { a.AddWriteConflictKey(a.b.key("b\x00")) }, false},
		{"WriteConflictRange", getN, func(a *actor) { a.AddWriteConflictRange(a.b.span("m", "p")) }, true},
		{"WriteConflictRangeBeside", getN, func(a *actor) { a.AddWriteConflictRange(a.b.span("m", "n")) }, false},
		{"ReadConflictKey", getB, func(a *actor) { a.AddReadConflictKey(a.b.key("b")); a.set("x") }, false},
		{"StampedKeyInRange", stamps, stampedKey, true},
		{"StampedKeyBesideRange", func(a *actor) { a.scan("t", "z", kv.RangeOptions{}) }, stampedKey, false},
		{"StampedKeyBesideKey", func(a *actor) { a.get("s0123456789") }, stampedKey, false},
		{"StampedValue", getB, func(a *actor) { a.SetVersionstampedValue(a.b.key("b"), []byte("0123456789"), 0) }, true},
		{"ReadOnly", getB, func(a *actor) { a.get("b") }, false},
	}
}
