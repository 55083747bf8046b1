package kvtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Program is a list of steps over a few keys and transactions, which one
// goroutine runs. Equal stores give equal transcripts of it.
type Program struct {
	// Seed is what the program was made from.
	Seed uint64
	// Steps run in order. A step whose transaction is not open does nothing, so
	// any of them may be left out.
	Steps []Step
}

// Step is one call of one of a program's transactions.
type Step struct {
	kind  stepKind
	slot  int
	key   string
	end   string
	value string
	op    kv.AtomicOp
	// number is a limit, an offset or which commit, by kind.
	number   int
	reverse  bool
	snapshot bool
	// later reads are waited for when the transaction waits, commits or is
	// cancelled.
	later bool
}

type stepKind uint8

const (
	stepBegin stepKind = iota
	stepBeginAt
	stepGet
	stepScan
	stepWait
	stepSet
	stepClear
	stepClearRange
	stepAtomic
	stepStampKey
	stepStampValue
	stepReadConflictKey
	stepReadConflictRange
	stepWriteConflictKey
	stepWriteConflictRange
	stepCommit
	stepCancel
)

const (
	programSteps = 60
	programSlots = 3
)

// stepOdds says how often each kind of step is drawn for an open transaction.
func stepOdds() []stepKind {
	var odds []stepKind
	for kind, n := range map[stepKind]int{
		stepGet: 10, stepScan: 14, stepWait: 2, stepSet: 9, stepClear: 4, stepClearRange: 4, stepAtomic: 9,
		stepStampKey: 2, stepStampValue: 2, stepReadConflictKey: 2, stepReadConflictRange: 1,
		stepWriteConflictKey: 1, stepWriteConflictRange: 1, stepCommit: 10, stepCancel: 1,
	} {
		odds = append(odds, slices.Repeat([]stepKind{kind}, n)...)
	}
	slices.Sort(odds)
	return odds
}

// plainKeys hold values without stamps. Any key of stampedValueKeys may hold a
// stamp behind its first four bytes. Stamped keys lie between s and t.
func plainKeys() []string { return []string{"a", "b", "b\x00", "c", "d", "d\xff", "e"} }

func stampedValueKeys() []string { return []string{"u", "v"} }

// boundaries are where ranges begin and end: no one lies among stamped keys,
// whose order to a fixed key differs from store to store.
func boundaries() []string {
	return []string{"", "a", "b", "b\x00", "b\x01", "c", "d", "d\xff", "e", "f", "s", "t", "u", "v", "w"}
}

func programValues() []string {
	return []string{"", "\x00", "x", "x\x00", "y", "xy", "\xff\xff", "yyyyyyyyy"}
}

// NewProgram returns the program of a seed.
func NewProgram(seed uint64) Program {
	m := maker{Rand: rand.New(rand.NewPCG(seed, 0)), odds: stepOdds()}
	p := Program{Seed: seed}
	for len(p.Steps) < programSteps {
		p.Steps = append(p.Steps, m.step())
	}
	for slot := range programSlots {
		p.Steps = append(p.Steps, Step{kind: stepCommit, slot: slot})
	}
	return p
}

// maker draws steps.
type maker struct {
	*rand.Rand
	odds []stepKind
	open [programSlots]bool
}

func pick[T any](m *maker, from []T) T { return from[m.IntN(len(from))] }

// chance is true once in n times.
func (m *maker) chance(n int) bool { return m.IntN(n) == 0 }

func (m *maker) step() Step {
	s := Step{slot: m.IntN(programSlots)}
	if !m.open[s.slot] {
		m.open[s.slot] = true
		if m.chance(6) {
			s.kind, s.number = stepBeginAt, m.IntN(3)
		}
		return s
	}
	s.kind = pick(m, m.odds)
	if s.kind == stepCommit || s.kind == stepCancel {
		m.open[s.slot] = false
	}
	s.key = pick(m, append(plainKeys(), stampedValueKeys()...))
	s.snapshot, s.later = m.chance(4), m.chance(4)
	switch s.kind {
	case stepScan, stepClearRange, stepReadConflictRange, stepWriteConflictRange:
		m.span(&s)
	case stepSet:
		s.value = pick(m, programValues())
	case stepAtomic:
		m.atomic(&s)
	case stepStampKey:
		s.key, s.value = "s", pick(m, programValues())
		s.end = pick(m, []string{"", "", "z"})
	case stepStampValue:
		s.key, s.value, s.number = pick(m, stampedValueKeys()), "head"+blank+pick(m, []string{"", "tail"}), 4
		if m.chance(20) {
			s.number = len(s.value)
		}
	}
	return s
}

func (m *maker) span(s *Step) {
	ends := boundaries()
	i, j := m.IntN(len(ends)), m.IntN(len(ends))
	if m.chance(3) {
		i, j = 0, len(ends)-1
	}
	s.key, s.end = ends[min(i, j)], ends[max(i, j)]
	s.reverse = m.chance(2)
	if m.chance(2) {
		s.number = 1 + m.IntN(4)
	}
	// Clears of nearly everything would leave too little to see.
	if s.kind == stepClearRange && !m.chance(4) {
		s.end = ends[min(min(i, j)+1+m.IntN(3), len(ends)-1)]
	}
}

// atomic draws an operation. Where a value may hold a stamp, only its first
// four bytes take part.
func (m *maker) atomic(s *Step) {
	s.op = kv.AtomicOp(1 + m.IntN(int(kv.CompareAndClear)))
	s.value = pick(m, programValues())
	if slices.Contains(stampedValueKeys(), s.key) && len(s.value) > 4 {
		s.value = s.value[:4]
	}
}

// String returns the step as the transcript shows it.
func (s Step) String() string {
	at := fmt.Sprintf("t%d ", s.slot)
	span := fmt.Sprintf("%q..%q", s.key, s.end)
	switch s.kind {
	case stepBegin:
		return at + "begin"
	case stepBeginAt:
		return at + fmt.Sprintf("begin at the last commit but %d", s.number)
	case stepGet:
		return at + fmt.Sprintf("get %q%s", s.key, s.readFlags())
	case stepScan:
		return at + "scan " + span + s.readFlags()
	case stepWait:
		return at + "wait"
	case stepSet:
		return at + fmt.Sprintf("set %q to %q", s.key, s.value)
	case stepClear:
		return at + fmt.Sprintf("clear %q", s.key)
	case stepClearRange:
		return at + "clear " + span
	case stepAtomic:
		return at + fmt.Sprintf("op %d on %q with %q", s.op, s.key, s.value)
	case stepStampKey:
		return at + fmt.Sprintf("stamp key %q..%q to %q", s.key, s.end, s.value)
	case stepStampValue:
		return at + fmt.Sprintf("stamp %q at %d of %q", s.key, s.number, s.value)
	case stepReadConflictKey:
		return at + fmt.Sprintf("add read conflict %q", s.key)
	case stepReadConflictRange:
		return at + "add read conflict " + span
	case stepWriteConflictKey:
		return at + fmt.Sprintf("add write conflict %q", s.key)
	case stepWriteConflictRange:
		return at + "add write conflict " + span
	case stepCommit:
		return at + "commit"
	default:
		return at + "cancel"
	}
}

func (s Step) readFlags() string {
	flags := ""
	if s.number > 0 && s.kind == stepScan {
		flags += fmt.Sprintf(" limit %d", s.number)
	}
	if s.reverse {
		flags += " reverse"
	}
	if s.snapshot {
		flags += " snapshot"
	}
	return flags
}
