package anomaly_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/internal/anomaly"
)

// serial is transactions that ran one after the other, and lists as the last of them left them.
type serial struct {
	txs   []anomaly.Tx
	lists map[string][]int
}

// moment is a place in time that no other transaction has, where transaction i has its effect at 100*i.
func moment(at, i int) int64 { return int64(at)*1000 + int64(i) }

// drawSerial runs random transactions in an order of effects. Their beginnings and ends overlap at random. Some fail,
// and of some it is unknown whether they failed. One reads all lists in the end.
func drawSerial(t *rapid.T) serial {
	s := serial{lists: map[string][]int{}}
	n := rapid.IntRange(2, 40).Draw(t, "transactions")
	for i := range n {
		before, after := rapid.IntRange(1, 500).Draw(t, "before"), rapid.IntRange(1, 500).Draw(t, "after")
		tx := anomaly.Tx{ID: i, Process: i % 7, Begin: moment(100*i-before, i), End: moment(100*i+after, 500+i),
			Outcome: rapid.SampledFrom([]anomaly.Outcome{0, 0, 0, 0, 0, anomaly.Failed, anomaly.Unknown}).Draw(t, "outcome")}
		lost := tx.Outcome == anomaly.Failed || tx.Outcome == anomaly.Unknown && rapid.Bool().Draw(t, "lost")
		lists := map[string][]int{}
		for key, list := range s.lists {
			lists[key] = slices.Clone(list)
		}
		for op := range rapid.IntRange(1, 6).Draw(t, "operations") {
			key := rapid.SampledFrom([]string{"x", "x", "x", "y", "y", "z"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "append") {
				element := 10*i + op + 1
				lists[key] = append(lists[key], element)
				tx.Ops = append(tx.Ops, anomaly.Append(key, element))
			} else {
				tx.Ops = append(tx.Ops, anomaly.Read(key, slices.Clone(lists[key])...))
			}
		}
		if !lost {
			s.lists = lists
		}
		s.txs = append(s.txs, tx)
	}
	last := anomaly.Tx{ID: n, Begin: moment(1000*n, n), End: moment(1000*n, 500+n)}
	for _, key := range []string{"x", "y", "z"} {
		last.Ops = append(last.Ops, anomaly.Read(key, slices.Clone(s.lists[key])...))
	}
	s.txs = append(s.txs, last)
	return s
}

func TestSerialHistoriesAreClean(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		require.Empty(t, anomaly.Check(drawSerial(t).txs))
	})
}

// writers are the transactions by the elements that they appended.
func (s serial) writers() map[string]anomaly.Tx {
	by := map[string]anomaly.Tx{}
	for _, tx := range s.txs {
		for _, op := range tx.Ops {
			by[fmt.Sprint(op.Key, op.Element)] = tx
		}
	}
	return by
}

// TestPlantedFaultsAreFound changes one thing in a history that was clean.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(*rapid.T, serial) (finds string, planted bool){
		"an append is lost": plantLoss, "two appends change places": plantSwap, "a read has another order": plantOrder,
		"a read is stale": plantStale,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planted := 0
			rapid.Check(t, func(t *rapid.T) {
				s := drawSerial(t)
				finds, ok := plant(t, s)
				if !ok {
					return
				}
				planted++
				found := anomaly.Check(s.txs)
				require.NotEmpty(t, found)
				if finds != "" {
					require.Contains(t, anomaly.Names(found), finds)
				}
			})
			require.Positive(t, planted)
		})
	}
}

// plantLoss takes an element of a transaction that is OK out of all reads of others.
func plantLoss(t *rapid.T, s serial) (string, bool) {
	key := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "lost key")
	if len(s.lists[key]) == 0 {
		return "", false
	}
	lost := rapid.SampledFrom(s.lists[key]).Draw(t, "lost element")
	writer := s.writers()[fmt.Sprint(key, lost)]
	for _, tx := range s.txs {
		for i, op := range tx.Ops {
			if op.Key == key && tx.ID != writer.ID {
				tx.Ops[i].List = slices.DeleteFunc(op.List, func(e int) bool { return e == lost })
			}
		}
	}
	return anomaly.LostAppend, writer.Outcome == anomaly.OK
}

// plantSwap has all reads show two elements in the other order, of which one had been appended before the other began.
func plantSwap(t *rapid.T, s serial) (string, bool) {
	list, by := s.lists["x"], s.writers()
	if len(list) < 2 {
		return "", false
	}
	a, b := list[0], list[len(list)-1]
	first, second := by[fmt.Sprint("x", a)], by[fmt.Sprint("x", b)]
	for _, tx := range s.txs {
		for _, op := range tx.Ops {
			for i, e := range op.List {
				switch {
				case op.Key == "x" && e == a:
					op.List[i] = b
				case op.Key == "x" && e == b:
					op.List[i] = a
				}
			}
		}
	}
	return "", first.Outcome == anomaly.OK && first.End < second.Begin
}

// plantOrder turns the order of the first two elements of one read around.
func plantOrder(_ *rapid.T, s serial) (string, bool) {
	for _, tx := range s.txs[:len(s.txs)-1] {
		for _, op := range tx.Ops {
			if tx.Outcome == anomaly.OK && len(op.List) > 2 && op.List[1] < 10*tx.ID {
				op.List[0], op.List[1] = op.List[1], op.List[0]
				return "", true
			}
		}
	}
	return "", false
}

// plantStale has a transaction that only reads miss an append that had ended.
func plantStale(_ *rapid.T, s serial) (string, bool) {
	by := s.writers()
	for _, tx := range s.txs {
		for i, op := range tx.Ops {
			if len(tx.Ops) != 1 || len(op.List) == 0 || tx.Outcome != anomaly.OK {
				continue
			}
			writer := by[fmt.Sprint(op.Key, op.List[len(op.List)-1])]
			if writer.Outcome == anomaly.OK && writer.End < tx.Begin {
				tx.Ops[i].List = op.List[:len(op.List)-1]
				return "", true
			}
		}
	}
	return "", false
}
