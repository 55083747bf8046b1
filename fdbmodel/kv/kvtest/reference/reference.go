// Package reference is a store that is meant to be obviously right rather than
// fast: one lock, every version of every key kept for ever, and conflicts found
// by comparing all ranges with all ranges. Other stores are compared with it.
// It follows FoundationDB where the contract of package kv leaves room, and it
// keeps nothing on disk.
package reference

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// versionStep keeps versions apart, so that no test can count on them being
// dense.
const versionStep = 10

// Options of a store.
type Options struct {
	// Now tells the time that transactions grow old by. Defaults to time.Now.
	Now func() time.Time
}

// Database is a store in memory.
type Database struct {
	now func() time.Time

	mu      sync.Mutex
	closed  bool
	commits []commit
	keys    [][]byte
	cells   map[string][]cell
	watches map[*watch]struct{}
}

// commit is what later transactions are checked against.
type commit struct {
	version kv.Version
	at      time.Time
	writes  []kv.Range
}

// cell is one version of a key's value, nil where the key was absent.
type cell struct {
	version kv.Version
	value   []byte
}

// Open returns an empty store.
func Open(o Options) *Database {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Database{now: o.Now, cells: map[string][]cell{}, watches: map[*watch]struct{}{}}
}

// Begin implements kv.Database.
func (d *Database) Begin(kv.Options) kv.Tx { return &tx{db: d} }

// Close implements kv.Database.
func (d *Database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for w := range d.watches {
		w.end(kv.ErrClosed)
	}
	return nil
}

// version returns the version of the last commit.
func (d *Database) version() kv.Version {
	if len(d.commits) == 0 {
		return versionStep
	}
	return d.commits[len(d.commits)-1].version
}

// tooOld reports whether another version took v's place more than a lifetime
// ago.
func (d *Database) tooOld(v kv.Version) bool {
	for i := len(d.commits) - 1; i >= 0 && d.commits[i].version > v; i-- {
		if d.now().Sub(d.commits[i].at) > kv.TxLifetime {
			return true
		}
	}
	return false
}

// at returns the value of key at version v, nil where it is absent.
func (d *Database) at(key string, v kv.Version) []byte {
	cells := d.cells[key]
	for i := len(cells) - 1; i >= 0; i-- {
		if cells[i].version <= v {
			return cells[i].value
		}
	}
	return nil
}

// keysIn returns every key of r that was ever written.
func (d *Database) keysIn(r kv.Range) [][]byte {
	first, _ := slices.BinarySearchFunc(d.keys, r.Begin, bytes.Compare)
	last, _ := slices.BinarySearchFunc(d.keys, r.End, bytes.Compare)
	if last < first {
		return nil
	}
	return d.keys[first:last]
}

// put writes the value of key at version v, nil to clear it.
func (d *Database) put(key string, v kv.Version, value []byte) {
	if _, known := d.cells[key]; !known {
		i, _ := slices.BinarySearchFunc(d.keys, []byte(key), bytes.Compare)
		d.keys = slices.Insert(d.keys, i, []byte(key))
	}
	d.cells[key] = append(d.cells[key], cell{version: v, value: value})
}

// conflicts reports whether a commit after version v wrote into one of reads.
func (d *Database) conflicts(v kv.Version, reads []kv.Range) bool {
	for i := len(d.commits) - 1; i >= 0 && d.commits[i].version > v; i-- {
		for _, w := range d.commits[i].writes {
			for _, r := range reads {
				if overlap(w, r) {
					return true
				}
			}
		}
	}
	return false
}

// apply commits mutations and returns where they are in history.
func (d *Database) apply(mutations []mutation, writes []kv.Range) kv.Committed {
	done := kv.Committed{Version: d.version() + versionStep}
	binary.BigEndian.PutUint64(done.Stamp[:8], uint64(done.Version))

	touched := view{scope: everything, rows: map[string][]byte{}}
	for i, m := range mutations {
		mutations[i] = m.stamped(done.Stamp)
		r := mutations[i].writes()
		writes = append(writes, r)
		for _, key := range d.keysIn(r) {
			touched.load(key, d.at(string(key), d.version()))
		}
	}
	changed := map[string]bool{}
	for key := range touched.rows {
		changed[key] = true
	}
	for _, m := range mutations {
		touched.apply(m)
	}
	for key := range touched.rows {
		changed[key] = true
	}
	for key := range changed {
		d.put(key, done.Version, touched.rows[key])
	}
	d.commits = append(d.commits, commit{version: done.Version, at: d.now(), writes: writes})
	for w := range d.watches {
		w.look()
	}
	return done
}
