package kvtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

// mutant is a store with one defect, which its transactions have.
type mutant struct {
	kv.Database
	defect func(kv.Tx) kv.Tx
}

func (m mutant) Begin(o kv.Options) kv.Tx { return m.defect(m.Database.Begin(o)) }

// defects are what random programs must find.
func defects() map[string]func(kv.Tx) kv.Tx {
	return map[string]func(kv.Tx) kv.Tx{
		"snapshot reads conflict":         func(tx kv.Tx) kv.Tx { return strictSnapshots{tx} },
		"reads do not conflict":           func(tx kv.Tx) kv.Tx { return looseReads{tx} },
		"phantoms do not conflict":        func(tx kv.Tx) kv.Tx { return loosePhantoms{tx} },
		"limits do not end conflicts":     func(tx kv.Tx) kv.Tx { return strictLimits{tx} },
		"more is set only if there is":    func(tx kv.Tx) kv.Tx { return exactMore{tx} },
		"clears of nothing are forgotten": func(tx kv.Tx) kv.Tx { return thriftyClears{tx} },
		"atomic operations add a read":    func(tx kv.Tx) kv.Tx { return readingAtomics{tx} },
		"min takes absent for zero":       func(tx kv.Tx) kv.Tx { return oldMin{tx} },
		"an empty value is absent":        func(tx kv.Tx) kv.Tx { return noEmpty{tx} },
		"writes do not conflict":          func(tx kv.Tx) kv.Tx { return noWriteConflicts{tx} },
		"conflicts are kept secret":       func(tx kv.Tx) kv.Tx { return secretive{tx} },
	}
}

func TestProgramsFindDefects(t *testing.T) {
	t.Parallel()
	for name, defect := range defects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := -1
			for seed := range uint64(300) {
				broken := mutant{newReference(t), defect}
				lines, err := kvtest.RunProgram(t.Context(), broken, kvtest.NewProgram(seed))
				if err != nil || !slices.Equal(lines, transcript(t, newReference(t), seed)) {
					found = int(seed)
					break
				}
			}
			require.GreaterOrEqual(t, found, 0, "no program of 300 found it")
		})
	}
}

type strictSnapshots struct{ kv.Tx }

func (m strictSnapshots) Snapshot() kv.Reader { return m.Tx }

type looseReads struct{ kv.Tx }

func (m looseReads) Get(key []byte) kv.Pending[[]byte] { return m.Snapshot().Get(key) }

type loosePhantoms struct{ kv.Tx }

func (m loosePhantoms) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	page, err := m.Snapshot().GetRange(r, o).Wait(context.Background())
	for _, item := range page.Items {
		m.AddReadConflictKey(item.Key)
	}
	return kv.Ready(page, err)
}

type strictLimits struct{ kv.Tx }

func (m strictLimits) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	m.AddReadConflictRange(r)
	return m.Tx.GetRange(r, o)
}

type exactMore struct{ kv.Tx }

func (m exactMore) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	all, err := m.Snapshot().GetRange(r, kv.RangeOptions{}).Wait(context.Background())
	if err != nil {
		return m.Tx.GetRange(r, o)
	}
	page, err := m.Tx.GetRange(r, o).Wait(context.Background())
	page.More = len(page.Items) < len(all.Items)
	return kv.Ready(page, err)
}

type thriftyClears struct{ kv.Tx }

func (m thriftyClears) ClearRange(r kv.Range) {
	page, err := m.Snapshot().GetRange(r, kv.RangeOptions{}).Wait(context.Background())
	if err != nil {
		m.Tx.ClearRange(r)
	}
	for _, item := range page.Items {
		m.Clear(item.Key)
	}
}

type readingAtomics struct{ kv.Tx }

func (m readingAtomics) Atomic(op kv.AtomicOp, key, param []byte) {
	m.AddReadConflictKey(key)
	m.Tx.Atomic(op, key, param)
}

type oldMin struct{ kv.Tx }

func (m oldMin) Atomic(op kv.AtomicOp, key, param []byte) {
	value, err := m.Snapshot().Get(key).Wait(context.Background())
	if op == kv.Min && err == nil && value == nil {
		param = make([]byte, len(param))
	}
	m.Tx.Atomic(op, key, param)
}

type noEmpty struct{ kv.Tx }

func (m noEmpty) Get(key []byte) kv.Pending[[]byte] {
	value, err := m.Tx.Get(key).Wait(context.Background())
	if len(value) == 0 {
		value = nil
	}
	return kv.Ready(value, err)
}

type noWriteConflicts struct{ kv.Tx }

func (m noWriteConflicts) AddWriteConflictKey([]byte)     {}
func (m noWriteConflicts) AddWriteConflictRange(kv.Range) {}

type secretive struct{ kv.Tx }

func (m secretive) AddReadConflictKey([]byte)     {}
func (m secretive) AddReadConflictRange(kv.Range) {}
