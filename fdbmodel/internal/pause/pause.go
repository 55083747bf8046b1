// Package pause is what a process knows to be paused: workers ask it before they take futures.
package pause

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Max is how many queues and functions may be paused at a time.
const Max = 1000

// Pause is a queue, or a function, that no worker takes futures of.
type Pause struct {
	// What is Queue or Function.
	What, Name string
	Record
}

// Text says that it is paused, since when and why, and what ends that.
func (p *Pause) Text() string {
	text := p.What + " " + p.Name + " has been paused"
	if p.At != 0 {
		text += " since " + time.UnixMilli(p.At).UTC().Format(time.RFC3339)
	}
	if p.Reason != "" {
		text += " (" + p.Reason + ")"
	}
	return text + ": futura resume " + p.What + " " + p.Name + " ends that"
}

// Find returns the pause that keeps workers from taking futures of a queue and a
// function, and false if there is none.
func Find(pauses []Pause, queue, function string) (Pause, bool) {
	for _, p := range pauses {
		if p.What == Queue && p.Name == queue || p.What == Function && isPart(function, p.Name) {
			return p, true
		}
	}
	return Pause{}, false
}

// isPart reports whether a function is another one, or a method of that module.
func isPart(function, of string) bool {
	rest, found := strings.CutPrefix(function, of)
	return found && (rest == "" || rest[0] == '/')
}

// Seen is what was paused at a version: the names, without the records.
type Seen struct {
	// Janitor is the record of the cluster's janitor at that version, nil if it has none.
	Janitor []byte
	// Beat is the time of the heartbeat that has read it, zero for other reads: what a start of a
	// worker has read it may have changed.
	Beat time.Time

	at   kv.Version
	list []Pause
}

func (s *Seen) has(what, name string) bool {
	return slices.ContainsFunc(s.list, func(p Pause) bool { return p.What == what && p.Name == name })
}

// Asked is a read of what is paused.
type Asked struct {
	tx      kv.Attempt
	janitor []byte
	page    kv.Pending[kv.Page]
}

// Ask requests what is paused, and who the janitor is, in one read.
func Ask(tx kv.Attempt, keys Keys) Asked {
	all := layout.Keyspace(keys)
	page := tx.Snapshot().GetRange(kv.Prefix(all.Bulletin()), kv.RangeOptions{Limit: Max + 1})
	return Asked{tx, all.Janitor(), page}
}

// Wait returns what is paused. The name suffices: a newer record pauses as well.
func (a Asked) Wait(ctx context.Context) (*Seen, error) {
	page, err := a.page.Wait(ctx)
	if err != nil {
		return nil, err
	}
	seen := &Seen{}
	for _, item := range page.Items {
		if bytes.Equal(item.Key, a.janitor) {
			seen.Janitor = item.Value
			continue
		}
		what, name := Parse(item.Key)
		seen.list = append(seen.list, Pause{What: what, Name: name})
	}
	seen.at, err = a.tx.ReadVersion(ctx)
	return seen, err
}

// Known is what a process knows to be paused. Claims read it instead of the store.
type Known struct {
	mu   sync.Mutex
	seen atomic.Pointer[Seen]
	// older is the first heartbeat since the last read that counted which has read at an older version.
	older time.Time
}

// roomKey is the key of what a cluster knows to be paused.
type roomKey struct{}

// Of returns what the process knows of a cluster.
func Of(cluster interface {
	Room(key any, open func() any) any
}) *Known {
	return cluster.Room(roomKey{}, func() any { return new(Known) }).(*Known)
}

// Learn replaces what is known by what was read, unless that is older. It reports whether
// something was resumed. Heartbeats that read at older versions for longer than a transaction may last are of a
// store that was restored from a backup: what they read counts.
func (k *Known) Learn(seen *Seen) (resumed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.seen.Load()
	if was != nil && seen.at < was.at {
		if k.older.IsZero() {
			k.older = seen.Beat
		}
		if seen.Beat.IsZero() || seen.Beat.Sub(k.older) <= kv.TxLifetime {
			return false
		}
	}
	k.older = time.Time{}
	k.seen.Store(seen)
	return was != nil && slices.ContainsFunc(was.list, func(p Pause) bool { return !seen.has(p.What, p.Name) })
}

// Janitor returns the record of the cluster's janitor as a heartbeat has read it, and when. The
// time is zero if the last read was none of a heartbeat.
func (k *Known) Janitor() (record []byte, beat time.Time) {
	if seen := k.seen.Load(); seen != nil {
		return seen.Janitor, seen.Beat
	}
	return nil, time.Time{}
}

// Any reports whether anything is paused.
func (k *Known) Any() bool {
	seen := k.seen.Load()
	return seen != nil && len(seen.list) > 0
}

// Queue reports whether a queue is paused.
func (k *Known) Queue(name string) bool {
	seen := k.seen.Load()
	return seen != nil && seen.has(Queue, name)
}

// Function reports whether a function is paused.
func (k *Known) Function(name string) bool {
	seen := k.seen.Load()
	if seen == nil {
		return false
	}
	_, paused := Find(seen.list, "", name)
	return paused
}
