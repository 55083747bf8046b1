// Package maintenance is what keeps a cluster clean: it makes futures ready that are due, ends
// those whose time is over, removes those whose retention has passed, and what nothing refers
// to. One process at a time has the role, and everything is safe alongside others that do it.
package maintenance

import (
	"bytes"
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/internal/roles"
	"github.com/futura-run/futura/fdbmodel/internal/sessions"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Janitor does the duties of a cluster's janitor. Its methods may be called from many
// goroutines.
type Janitor struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
	at      *cursors
}

// cursors are how far the scans of a process have come.
type cursors struct{ delayed, limits, done shards.Cursor }

// Of returns a janitor of a cluster.
func Of(c *fdbmodel.Cluster) Janitor {
	type key struct{}
	return Janitor{c, c.Keys(), c.Room(key{}, func() any { return &cursors{} }).(*cursors)}
}

// Acquire makes worker the cluster's janitor, or keeps it so, if the record of the present
// one is still the one that the caller observed. It returns the resulting record and whether
// worker holds the role. An unknown commit is harmless.
func (j Janitor) Acquire(ctx context.Context, worker layout.WorkerID, observed []byte, count int64,
) (record []byte, held bool, err error) {
	traits := kv.TraitsOf(j.cluster.Database())
	wanted := layout.Encode(&layout.JanitorRecord{Worker: worker, Count: count, Connection: traits.Connection,
		Opening: traits.OwnOpening()})
	_, err = j.cluster.Transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
		value, present, err := j.present(ctx, tx)
		if err != nil {
			return err
		}
		if value != nil && present != worker && !bytes.Equal(value, observed) {
			record, held = value, false
			return nil
		}
		tx.Set(j.keys.Janitor(), wanted)
		record, held = wanted, true
		return nil
	})
	return record, held, err
}

// ReleaseConnection gives up the role of whoever reached the store through a connection which is lost. An unknown
// commit is harmless: a janitor that lives on takes the role again.
func (j Janitor) ReleaseConnection(ctx context.Context, connection string) error {
	return roles.ReleaseJanitor(ctx, j.cluster.Transact, j.keys, func(of *layout.JanitorRecord) bool {
		return connection != "" && of.Connection == connection
	})
}

// IsGone reports whether a record is of a janitor whose process had the store open before this one: it has ended.
func (j Janitor) IsGone(record []byte) bool {
	var of layout.JanitorRecord
	if layout.Decode(j.keys.Janitor(), record, &of) != nil || of.Opening == "" {
		return false
	}
	present := kv.TraitsOf(j.cluster.Database()).OwnOpening()
	return present != "" && of.Opening != present
}

// Present returns the record of the present janitor, which changes while the janitor is
// alive, and its worker id. It returns nothing if there is none.
func (j Janitor) Present(ctx context.Context) (record []byte, worker layout.WorkerID, err error) {
	err = j.cluster.View(ctx, func(tx kv.Attempt) error {
		record, worker, err = j.present(ctx, tx.Snapshot())
		return err
	})
	return record, worker, err
}

// Seen is Present as of the last heartbeat of a worker of this process, without a read: at is
// when that was. It returns false if that is longer ago than maxAge.
func (j Janitor) Seen(maxAge time.Duration) (record []byte, worker layout.WorkerID, at time.Time, ok bool) {
	record, at = pause.Of(j.cluster).Janitor()
	if at.IsZero() || j.cluster.Now().Sub(at) > maxAge {
		return nil, "", at, false
	}
	if record == nil {
		return nil, "", at, true
	}
	var present layout.JanitorRecord
	err := layout.Decode(j.keys.Janitor(), record, &present)
	return record, present.Worker, at, err == nil
}

func (j Janitor) present(ctx context.Context, tx kv.Reader) ([]byte, layout.WorkerID, error) {
	value, err := tx.Get(j.keys.Janitor()).Wait(ctx)
	if err != nil || value == nil {
		return nil, "", err
	}
	var present layout.JanitorRecord
	err = layout.Decode(j.keys.Janitor(), value, &present)
	return value, present.Worker, err
}

// Release gives up the role, if worker has it. An unknown commit is harmless.
func (j Janitor) Release(ctx context.Context, worker layout.WorkerID) error {
	return roles.ReleaseJanitor(ctx, j.cluster.Transact, j.keys, roles.Of(worker))
}

// Sessions returns the sessions that have a record, mail or a wake key, with their records,
// which change while the sessions are alive. The record is nil for a session without one.
func (j Janitor) Sessions(ctx context.Context) (map[layout.SessionID][]byte, error) {
	return sessions.All(ctx, j.cluster)
}

// DropSession removes a session with its mail, whether or not its record has changed since it
// was read: a client that is alive writes it again. Its futures stay, and so do their
// results. An unknown commit is harmless.
func (j Janitor) DropSession(ctx context.Context, session layout.SessionID) error {
	return sessions.Drop(ctx, j.cluster, session)
}
