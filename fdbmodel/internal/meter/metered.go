package meter

import (
	"cmp"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
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
	m.Items, m.Failed = add(m.Items, o.Items), add(m.Failed, o.Failed)
	m.RunTime, m.CPU = add(m.RunTime, o.RunTime), add(m.CPU, o.CPU)
	m.In, m.Out = add(m.In, o.In), add(m.Out, o.Out)
	m.Memory = max(m.Memory, o.Memory)
}

// add adds numbers that are not negative.
func add[T ~int64](a, b T) T {
	const most = 1<<63 - 1
	if b > most-a {
		return most
	}
	return a + b
}

// Check returns ErrBadRecord for a number below 0.
func (m *Metered) Check() error {
	if min(m.Items, m.Failed, int64(m.RunTime), int64(m.CPU), m.In, m.Out, m.Memory) < 0 {
		return fmt.Errorf("%w: metered use below 0: %+v", layout.ErrBadRecord, *m)
	}
	return nil
}

// What the name in a key of use is of.
const (
	Peer   = "peer"
	Worker = "worker"

	// Unnamed stands for workers without a name.
	Unnamed = "workers"
)

// maxMeteredName bounds the name in a key; longer ones are cut.
const maxMeteredName = 128

// MeteredKey says who has used something, and when.
type MeteredKey struct {
	Day        string // of UTC, such as 2026-01-31
	Kind       string // Peer or Worker
	Name       string // survives restarts of the worker
	Membership layout.WorkerID
}

// SameWorker reports whether two keys are of the same worker and day.
func (m MeteredKey) SameWorker(o MeteredKey) bool {
	m.Membership = o.Membership
	return m == o
}

// meteredBy returns the key of what a worker has used on a day: a peer by its id, others
// by their name.
func meteredBy(w *layout.WorkerInfo, day string) MeteredKey {
	m := MeteredKey{day, Worker, cmp.Or(w.Name, Unnamed), w.ID}
	if peer := w.Labels[layout.LabelPeer]; peer != "" {
		m.Kind, m.Name = Peer, peer
	}
	m.Name = m.Name[:min(len(m.Name), maxMeteredName)]
	return m
}
