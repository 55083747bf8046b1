package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const coldName = "COLD"

// hintsMost is how many ranges the hints have at most.
const hintsMost = 1024

// coldHints are what the file COLD says: the ranges that were cold when it was written, for
// the next opening to leave on disk. Nothing depends on it: the tables have all rows. Where it
// is missing, damaged or old, other rows are in memory after an opening.
type coldHints struct {
	// Ranges are pairs of keys.
	Ranges [][2][]byte `json:"ranges"`
	// Keys and Bytes are those of all rows of the store at a version.
	Keys    int64      `json:"keys"`
	Bytes   int64      `json:"bytes"`
	Version kv.Version `json:"version"`
}

// hints returns what the next opening is to leave on disk. The caller holds the lock.
func (x *index) hints() (h coldHints) {
	all := x.cold.ranges
	together := (len(all) + hintsMost - 1) / hintsMost
	for i := 0; i < len(all); i += together {
		last := min(i+together, len(all)) - 1
		h.Ranges = append(h.Ranges, [2][]byte{all[i].Begin, all[last].End})
	}
	h.Keys, h.Bytes = x.liveKeys+x.cold.keys, x.allBytes()
	return h
}

// writeHints writes the hints, if rows have come or gone since. The caller holds
// checkpointLock.
func (s *Store) writeHints() {
	x := &s.index
	x.mu.RLock()
	h := x.hints()
	h.Version = kv.Version(s.sequenced.Load())
	x.mu.RUnlock()
	if len(h.Ranges) == 0 && !s.hinted {
		return
	}
	body, err := json.Marshal(h)
	if err == nil {
		err = s.disk.journal.dir.inPlace()
	}
	if err == nil {
		err = s.disk.journal.dir.write(coldName, append(append(body, '\n'), checksumLine(body)...))
	}
	if s.hinted = err == nil; err != nil {
		s.options.Logger.Warn("what lies on disk alone can't be recorded: the next opening takes other rows into memory",
			"error", err)
	}
}

// readHints reads the hints, which are empty where there are none.
func (d directory) readHints() (h coldHints, err error) {
	b, err := d.read(coldName)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	body, sum, _ := bytes.Cut(b, []byte("\n"))
	if string(sum) != checksumLine(body) || json.Unmarshal(body, &h) != nil {
		return coldHints{}, nil
	}
	return h, nil
}

func (h coldHints) set() (s rangeSet) {
	for _, r := range h.Ranges {
		s.add(r[0], r[1])
	}
	return s
}

// countCold counts the rows that are on disk alone, when the index has come to the version of
// the hints.
func (l *loader) countCold() {
	if !l.counted {
		l.counted = true
		l.index.cold.count(l.hints.Keys-l.index.liveKeys, l.hints.Bytes-l.index.liveBytes)
	}
}

// loadRows puts rows of tables into memory until it has most bytes. It leaves those in the
// hints on disk, and what does not fit.
func (l *loader) loadRows(w *mergedWalk, h coldHints, most int64) error {
	x := l.index
	keys, size := int64(0), int64(0)
	for _, walk := range w.walks {
		keys, size = keys+walk.table.Rows, size+walk.table.Size
	}
	if size+keys*rowOverhead <= most {
		h = coldHints{} // all of it fits
	}
	cold := h.set()
	for w.valid {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		key := w.entry.key
		i := cold.from(key)
		isCold := i < len(cold.ranges) && cold.ranges[i].Contains(key)
		var r kv.Range
		switch {
		case isCold:
			r = cold.ranges[i]
		case x.resident() > most:
			r = kv.Range{Begin: bytes.Clone(key), End: []byte{0xff}}
		default:
			if err := l.append(w); err != nil {
				return err
			}
			if err := w.next(); err != nil {
				return err
			}
			continue
		}
		x.cold.add(r.Begin, r.End)
		if err := w.seek(r.End); err != nil {
			return err
		}
	}
	if len(x.cold.ranges) == 0 {
		return w.complete()
	}
	if l.hints = h; len(h.Ranges) == 0 {
		// Rows that were replaced or deleted count as well.
		l.hints = coldHints{Keys: keys, Bytes: size}
	}
	return nil
}
