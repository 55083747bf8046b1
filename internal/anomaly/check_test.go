package anomaly_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/internal/anomaly"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// history makes the transactions of a test, one from each line: its id, its beginning and end, and its operations, such
// as "1 0-5 x+1 y=[2 3]", which appends 1 to x and reads 2 and 3 of y. A failed one ends with !, an unknown one with ?.
func history(t *testing.T, lines ...string) []anomaly.Tx {
	var txs []anomaly.Tx
	for _, line := range lines {
		id, rest, _ := strings.Cut(line, " ")
		span, ops, _ := strings.Cut(rest, " ")
		begin, end, _ := strings.Cut(span, "-")
		tx := anomaly.Tx{ID: number(t, id), Process: number(t, id), Begin: int64(number(t, begin))}
		if found := strings.HasSuffix(end, "!"); found {
			tx.Outcome = anomaly.Failed
		} else if found := strings.HasSuffix(end, "?"); found {
			tx.Outcome = anomaly.Unknown
		}
		tx.End = int64(number(t, strings.TrimRight(end, "!?")))
		for ops != "" {
			var op string
			if op, ops, _ = strings.Cut(ops, " "); strings.Contains(op, "[") && !strings.HasSuffix(op, "]") {
				list, others, _ := strings.Cut(ops, "]")
				op, ops = op+" "+list+"]", strings.TrimPrefix(others, " ")
			}
			tx.Ops = append(tx.Ops, operation(t, op))
		}
		txs = append(txs, tx)
	}
	return txs
}

func operation(t *testing.T, text string) anomaly.Op {
	if key, element, found := strings.Cut(text, "+"); found {
		return anomaly.Append(key, number(t, element))
	}
	key, list, found := strings.Cut(text, "=")
	require.True(t, found, text)
	var elements []int
	for _, element := range strings.Fields(strings.Trim(list, "[]")) {
		elements = append(elements, number(t, element))
	}
	return anomaly.Read(key, elements...)
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := anomaly.Check(history(t, c.wrong...))
			require.Equal(t, c.finds, anomaly.Names(found), "%v", found)
			require.Empty(t, anomaly.Check(history(t, c.right...)))
		})
	}
}

// nameCase is a small history with an anomaly, and the nearest one without.
type nameCase struct {
	name         string
	finds        []string
	wrong, right []string
}

func cases() []nameCase { return append(itemCases(), cycleCases()...) }

func itemCases() []nameCase {
	return []nameCase{
		{"aborted read", []string{anomaly.G1a},
			[]string{"1 0-9! x+1", "2 1-8 x=[1]"},
			[]string{"1 0-9? x+1", "2 1-8 x=[1]"}},
		{"aborted read behind others", []string{anomaly.G1a},
			[]string{"1 0-2 x+1", "2 0-3! x+2", "3 0-4 x=[1 2] x+3", "4 5-6 x=[1 2 3]"},
			[]string{"1 0-2 x+1", "2 0-3! x+2", "3 0-4 x=[1] x+3", "4 5-6 x=[1 3]"}},
		{"intermediate read", []string{anomaly.G1b},
			[]string{"1 0-9 x+1 x+2", "2 1-8 x=[1]", "3 10-11 x=[1 2]"},
			[]string{"1 0-9 x+1 x+2", "2 1-8 x=[1 2]", "3 10-11 x=[1 2]"}},
		{"incompatible orders", []string{anomaly.IncompatibleOrder},
			[]string{"1 0-9 x+1", "2 0-9 x+2", "3 1-8 x=[1]", "4 1-8 x=[2 1]"},
			[]string{"1 0-9 x+1", "2 0-9 x+2", "3 1-8 x=[2]", "4 1-8 x=[2 1]"}},
		{"duplicate element", []string{anomaly.DuplicateElement},
			[]string{"1 0-9 x+1", "2 1-8 x=[1 1]"},
			[]string{"1 0-9 x+1", "2 1-8 x=[1]"}},
		{"unwritten element", []string{anomaly.UnwrittenElement},
			[]string{"2 1-8 x=[1]"},
			[]string{"2 1-8 x=[]"}},
		{"lost append", []string{anomaly.LostAppend},
			[]string{"1 0-1 x+1", "2 2-3 x=[]"},
			[]string{"1 0-3 x+1", "2 2-3 x=[]"}},
		{"lost append of an unknown transaction", []string{anomaly.LostAppend},
			[]string{"1 0-1 x+1", "2 2-3 x=[]"},
			[]string{"1 0-1? x+1", "2 2-3 x=[]"}},
		{"reads that differ", []string{anomaly.Internal},
			[]string{"1 0-9 x+1", "2 0-9 x=[] x=[1]"},
			[]string{"1 0-9 x+1", "2 0-9 x=[1] x=[1]"}},
		{"own append that is not read", []string{anomaly.Internal},
			[]string{"1 0-9 x+1 x=[]"},
			[]string{"1 0-9 x+1 x=[1]"}},
		{"own append among others", []string{anomaly.Internal},
			[]string{"1 0-9 x+1", "2 0-9 x=[] x+2 x=[1 2]"},
			[]string{"1 0-9 x+1", "2 0-9 x=[1] x+2 x=[1 2]"}},
	}
}

func cycleCases() []nameCase {
	return []nameCase{
		{"write cycle", []string{anomaly.G0},
			[]string{"1 0-9 x+1 y+1", "2 0-9 x+2 y+2", "3 10-11 x=[1 2] y=[2 1]"},
			[]string{"1 0-9 x+1 y+1", "2 0-9 x+2 y+2", "3 10-11 x=[1 2] y=[1 2]"}},
		{"write cycle of an unknown transaction", []string{anomaly.G0},
			[]string{"1 0-9? x+1 y+1", "2 0-9 x+2 y+2", "3 10-11 x=[1 2] y=[2 1]"},
			[]string{"1 0-9? x+1 y+1", "2 0-9 x+2 y+2", "3 10-11 x=[1 2] y=[1 2]"}},
		{"appends among those of another", []string{anomaly.G0},
			[]string{"1 0-9 x+1 x+3", "2 0-9 x+2", "3 10-11 x=[1 2 3]"},
			[]string{"1 0-9 x+1 x+3", "2 0-9 x+2", "3 10-11 x=[1 3 2]"}},
		{"circular flow", []string{anomaly.G1c},
			[]string{"1 0-9 x+1 y=[2]", "2 0-9 y+2 x=[1]"},
			[]string{"1 0-9 x+1 y=[]", "2 0-9 y+2 x=[1]"}},
		{"circular flow through an append", []string{anomaly.G1c},
			[]string{"1 0-9 x+1 z+1", "2 0-9 x+2 z=[1]", "3 10-11 x=[2 1]"},
			[]string{"1 0-9 x+1 z+1", "2 0-9 x+2 z=[1]", "3 10-11 x=[1 2]"}},
		{"read skew", []string{anomaly.GSingle},
			[]string{"1 0-9 x=[] y=[1]", "2 0-9 x+1 y+1"},
			[]string{"1 0-9 x=[1] y=[1]", "2 0-9 x+1 y+1"}},
		{"lost update", []string{anomaly.GSingle},
			[]string{"1 0-9 x=[] x+1", "2 0-9 x=[] x+2", "3 1-8 x=[2]"},
			[]string{"1 0-9 x=[2] x+1", "2 0-9 x=[] x+2", "3 1-8 x=[2]"}},
		{"lost update that is read", []string{anomaly.GSingle, anomaly.LostAppend},
			[]string{"1 0-9 x=[] x+1", "2 0-9 x=[] x+2", "3 10-18 x=[2]"},
			[]string{"1 0-9 x=[2] x+1", "2 0-9 x=[] x+2", "3 10-18 x=[2 1]"}},
		{"two read skews of one writer", []string{anomaly.GSingle},
			[]string{"1 0-9 x=[] y=[1] v=[1]", "2 0-9 x+1 y+1 u+1", "4 0-9 z=[] w=[1] v+1", "5 0-9 z+1 w+1 u=[1]",
				"6 0-9 z=[] w=[1]"},
			[]string{"1 0-9 x=[] y=[] v=[]", "2 0-9 x+1 y+1 u+1", "4 0-9 z=[] w=[] v+1", "5 0-9 z+1 w+1 u=[1]",
				"6 0-9 z=[] w=[]"}},
		{"write skew", []string{anomaly.G2},
			[]string{"1 0-9 x=[] y+1", "2 0-9 y=[] x+2"},
			[]string{"1 0-9 x=[] y+1", "2 0-9 y=[1] x+2"}},
		{"write skew of three", []string{anomaly.G2},
			[]string{"1 0-9 x=[] y+1", "2 0-9 y=[] z+1", "3 0-9 z=[] x+1", "4 10-11 x=[1] y=[1] z=[1]"},
			[]string{"1 0-9 x=[] y+1", "2 0-9 y=[] z+1", "3 0-9 z=[1] x+1", "4 10-11 x=[1] y=[1] z=[1]"}},
		{"appends against time", []string{anomaly.G0 + anomaly.Realtime},
			[]string{"1 0-1 x+1", "2 2-3 x+2", "3 4-5 x=[2 1]"},
			[]string{"1 0-2 x+1", "2 1-3 x+2", "3 4-5 x=[2 1]"}},
		{"read before its append", []string{anomaly.G1c + anomaly.Realtime},
			[]string{"1 0-1 x=[1]", "2 2-3 x+1"},
			[]string{"1 0-3 x=[1]", "2 2-4 x+1"}},
		{"stale read", []string{anomaly.GSingle + anomaly.Realtime},
			[]string{"1 0-1 x+1", "2 2-4 x=[]", "3 3-5 x=[1]"},
			[]string{"1 0-3 x+1", "2 2-4 x=[]", "3 3-5 x=[1]"}},
		{"stale read across others", []string{anomaly.GSingle + anomaly.Realtime},
			[]string{"1 0-1 x+1", "4 2-3 z=[]", "5 4-5 z=[]", "2 6-9 x=[]", "3 7-10 x=[1]"},
			[]string{"1 0-7 x+1", "4 2-3 z=[]", "5 4-5 z=[]", "2 6-9 x=[]", "3 7-10 x=[1]"}},
		{"stale read after one that overlaps", []string{anomaly.GSingle + anomaly.Realtime},
			[]string{"1 0-2 x+1", "4 1-3 z=[]", "2 4-6 x=[]", "3 5-7 x=[1]"},
			[]string{"1 0-5 x+1", "4 1-3 z=[]", "2 4-6 x=[]", "3 5-7 x=[1]"}},
		{"two stale reads", []string{anomaly.G2 + anomaly.Realtime},
			[]string{"3 0-1 y+1", "2 0-9 x+1 y=[]", "1 2-3 x=[]"},
			[]string{"3 0-3 y+1", "2 0-9 x+1 y=[]", "1 2-3 x=[]"}},
		{"an unknown end is later than all", []string{anomaly.GSingle + anomaly.Realtime},
			[]string{"1 0-1 x+1", "2 2-4 x=[]", "3 3-5 x=[1]"},
			[]string{"1 0-1? x+1", "2 2-4 x=[]", "3 3-5 x=[1]"}},
	}
}

func TestFindingsAreReadable(t *testing.T) {
	t.Parallel()
	found := anomaly.Check(history(t, "3 0-9 x=[] y=[1]", "9 0-9 x+1 y+1"))
	require.Len(t, found, 1)
	require.Equal(t, `G-single
  T3 read [] of x, T9 appended 1 next: rw
  T9 appended 1 to y, T3 read [1]: wr
    T3 of process 3, 0 to 9: read x [], read y [1]
    T9 of process 9, 0 to 9: append 1 to x, append 1 to y
`, found[0].String())
}

// TestShortestCycle has a write skew of two in a long tangle.
func TestShortestCycle(t *testing.T) {
	t.Parallel()
	found := anomaly.Check(history(t, "1 0-9 a=[] b+1", "2 0-9 b=[] c+1", "3 0-9 c=[] d+1", "4 0-9 d=[] a+1",
		"5 0-9 a=[] e+1", "6 0-9 e=[] d=[] a+2 f+1", "7 0-9 f=[] b+2 g=[]", "8 0-9 g+1 f=[]"))
	require.Len(t, found, 1)
	require.Equal(t, anomaly.G2, found[0].Name)
	require.Len(t, found[0].Txs, 2, "%s", found[0])
}

func TestElementsAreDistinct(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "anomaly: T1 and T2 both append 7 to x", func() {
		anomaly.Check(history(t, "1 0-1 x+7", "2 0-1 x+7"))
	})
}
