package layout

import (
	"cmp"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Metered is what attempts have used, of those whose end the store has recorded: with a
// result, or as failed. What a worker gave back counts nothing.
type Metered struct {
	Items   int64         `msgpack:"n,omitempty" json:"items"`  // with a result
	Failed  int64         `msgpack:"f,omitempty" json:"failed"` // attempts, not futures
	RunTime time.Duration `msgpack:"r,omitempty" json:"run_time_ns"`
	CPU     time.Duration `msgpack:"c,omitempty" json:"cpu_ns"` // as far as it is known
	In      int64         `msgpack:"i,omitempty" json:"bytes_in"`
	Out     int64         `msgpack:"o,omitempty" json:"bytes_out"`
	Memory  int64         `msgpack:"m,omitempty" json:"memory_max_bytes"` // the most of one attempt, as far as it is known
}

// Add adds what others have used. What would exceed the largest number stays there.
func (m *Metered) Add(o *Metered) {
	m.Items, m.Failed = sum(m.Items, o.Items), sum(m.Failed, o.Failed)
	m.RunTime, m.CPU = sum(m.RunTime, o.RunTime), sum(m.CPU, o.CPU)
	m.In, m.Out = sum(m.In, o.In), sum(m.Out, o.Out)
	m.Memory = max(m.Memory, o.Memory)
}

// sum adds numbers that are not negative.
func sum[T ~int64](a, b T) T {
	const most = 1<<63 - 1
	if b > most-a {
		return most
	}
	return a + b
}

// Check returns ErrBadRecord for a number below 0.
func (m *Metered) Check() error {
	if min(m.Items, m.Failed, int64(m.RunTime), int64(m.CPU), m.In, m.Out, m.Memory) < 0 {
		return fmt.Errorf("%w: metered use below 0: %+v", ErrBadRecord, *m)
	}
	return nil
}

// Kind of key of what workers have used, and its subspace.
const (
	SubMetered = "metered"

	// What the name in such a key is of.
	MeteredPeer   = "peer"
	MeteredWorker = "worker"

	// UnnamedWorkers stands for workers without a name.
	UnnamedWorkers = "workers"
)

// maxMeteredName bounds the name in a key; longer ones are cut.
const maxMeteredName = 128

// meteredKinds are the kinds of keys of what was used.
func meteredKinds() []KeyKind {
	return []KeyKind{{"metered", SubMetered, false,
		in(Text("day"), Choice("kind", MeteredPeer, MeteredWorker), Text("name"), Text("membership")),
		FormatRecord, RecordOf[Metered], "", carried,
		"the use of one start of a worker on a day; without a membership, the sum of those that have ended",
		"the worker with its heartbeat, if it has used something, and when it leaves; folded by the janitor"}}
}

// MeteredKey says who has used something, and when.
type MeteredKey struct {
	Day        string // of UTC, such as 2026-01-31
	Kind       string // MeteredPeer or MeteredWorker
	Name       string // survives restarts of the worker
	Membership WorkerID
}

// SameWorker reports whether two keys are of the same worker and day.
func (m MeteredKey) SameWorker(o MeteredKey) bool {
	m.Membership = o.Membership
	return m == o
}

// Day is the day of a time in UTC, as in keys.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// MeteredBy returns the key of what a worker has used on a day: a peer by its id, others
// by their name.
func (w *WorkerInfo) MeteredBy(day string) MeteredKey {
	m := MeteredKey{day, MeteredWorker, cmp.Or(w.Name, UnnamedWorkers), w.ID}
	if peer := w.Labels[LabelPeer]; peer != "" {
		m.Kind, m.Name = MeteredPeer, peer
	}
	m.Name = m.Name[:min(len(m.Name), maxMeteredName)]
	return m
}

// MeteredOn returns the prefix of what was used on a day.
func (k Keyspace) MeteredOn(day string) []byte { return tuple.AppendString(k.Global(SubMetered), day) }

// Metered returns the key of what one start of a worker has used on a day.
func (k Keyspace) Metered(m MeteredKey) []byte {
	b := tuple.AppendString(tuple.AppendString(k.MeteredOn(m.Day), m.Kind), m.Name)
	return tuple.AppendString(b, string(m.Membership))
}

// ParseMetered parses a key of what was used.
func (k Keyspace) ParseMetered(key []byte) (MeteredKey, error) {
	rest := tuple.NewReader(key[len(k.Global(SubMetered)):])
	m := MeteredKey{Day: rest.Text(), Kind: rest.Text(), Name: rest.Text(), Membership: WorkerID(rest.Text())}
	if err := rest.Done(); err != nil {
		return m, fmt.Errorf("%s: %w: %w", tuple.String(key), ErrBadRecord, err)
	}
	return m, nil
}
