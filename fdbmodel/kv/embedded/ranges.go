package embedded

import (
	"bytes"
	"slices"
	"sort"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	rangeTail    = 16
	rangeRunMax  = 4096
	rangeMemory  = 32 << 10
	rangeMergeBy = 2
)

// writtenRange is a range that a commit cleared or declared as written.
type writtenRange struct {
	begin, end []byte
	version    kv.Version
}

// rangeRun is ranges of successive commits in order of their begins.
type rangeRun struct {
	ranges []writtenRange
	// reach is, for each range, the largest end up to it.
	reach  [][]byte
	newest kv.Version
}

// writtenRanges remembers ranges that were written, for the conflict check:
// the rows alone can't show a write where there is no row. Only the sequencer
// uses it.
type writtenRanges struct {
	tail   []writtenRange
	runs   []rangeRun
	newest kv.Version
	memory []byte
}

// add remembers a range. Versions never fall from call to call.
func (w *writtenRanges) add(begin, end []byte, v kv.Version) {
	w.tail = append(w.tail, writtenRange{begin: w.keep(begin), end: w.keep(end), version: v})
	w.newest = v
	if len(w.tail) >= rangeTail {
		w.seal()
	}
}

// addKey remembers a single key.
func (w *writtenRanges) addKey(key []byte, v kv.Version) {
	end := w.keep(key, 0)
	w.tail = append(w.tail, writtenRange{begin: end[:len(key):len(key)], end: end, version: v})
	w.newest = v
	if len(w.tail) >= rangeTail {
		w.seal()
	}
}

func (w *writtenRanges) keep(key []byte, suffix ...byte) []byte {
	need := len(key) + len(suffix)
	if cap(w.memory)-len(w.memory) < need {
		w.memory = make([]byte, 0, max(rangeMemory, need))
	}
	from := len(w.memory)
	w.memory = append(append(w.memory, key...), suffix...)
	return w.memory[from:len(w.memory):len(w.memory)]
}

// seal turns the tail into a run and merges it with runs of its size.
func (w *writtenRanges) seal() {
	ranges := slices.Clone(w.tail)
	slices.SortFunc(ranges, byBegin)
	w.tail = w.tail[:0]
	run := newRangeRun(ranges, w.newest)
	for n := len(w.runs); n > 0; n-- {
		last := w.runs[n-1]
		if len(last.ranges) > rangeMergeBy*len(run.ranges) || len(last.ranges)+len(run.ranges) > rangeRunMax {
			break
		}
		run = newRangeRun(mergeRanges(last.ranges, run.ranges), run.newest)
		w.runs[n-1] = rangeRun{}
		w.runs = w.runs[:n-1]
	}
	w.runs = append(w.runs, run)
}

func byBegin(a, b writtenRange) int { return bytes.Compare(a.begin, b.begin) }

// mergeRanges merges two lists that are in order of their begins.
func mergeRanges(a, b []writtenRange) []writtenRange {
	merged := make([]writtenRange, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byBegin(a[0], b[0]) <= 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}

// newRangeRun makes a run of ranges in order of their begins.
func newRangeRun(ranges []writtenRange, newest kv.Version) rangeRun {
	reach := make([][]byte, len(ranges))
	for i, r := range ranges {
		reach[i] = r.end
		if i > 0 && bytes.Compare(reach[i-1], r.end) > 0 {
			reach[i] = reach[i-1]
		}
	}
	return rangeRun{ranges: ranges, reach: reach, newest: newest}
}

// written returns the version at which a part of the range from begin to end
// was written after since, or zero.
func (w *writtenRanges) written(begin, end []byte, since kv.Version) kv.Version {
	if w.newest <= since {
		return 0
	}
	for i := len(w.tail) - 1; i >= 0 && w.tail[i].version > since; i-- {
		r := &w.tail[i]
		if bytes.Compare(r.begin, end) < 0 && bytes.Compare(begin, r.end) < 0 {
			return r.version
		}
	}
	for i := len(w.runs) - 1; i >= 0 && w.runs[i].newest > since; i-- {
		if v := w.runs[i].written(begin, end, since); v != 0 {
			return v
		}
	}
	return 0
}

func (run *rangeRun) written(begin, end []byte, since kv.Version) kv.Version {
	behind := sort.Search(len(run.ranges), func(i int) bool {
		return bytes.Compare(run.ranges[i].begin, end) >= 0
	})
	for i := behind - 1; i >= 0 && bytes.Compare(begin, run.reach[i]) < 0; i-- {
		r := &run.ranges[i]
		if r.version > since && bytes.Compare(begin, r.end) < 0 {
			return r.version
		}
	}
	return 0
}

// forget drops what no transaction that reads at floor or later asks for.
func (w *writtenRanges) forget(floor kv.Version) {
	n := 0
	for n < len(w.runs) && w.runs[n].newest <= floor {
		n++
	}
	if n > 0 {
		w.runs = slices.Delete(w.runs, 0, n)
	}
}
