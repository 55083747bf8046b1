// Package sessions finds and drops the sessions of clients.
package sessions

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Store is where sessions are.
type Store interface {
	Transact(context.Context, kv.Options, func(kv.Attempt) error) (kv.Result, error)
	View(context.Context, func(kv.Attempt) error) error
	Keys() layout.Keyspace
}

// page is the maximum number of sessions that one transaction reads: one read after the other.
const page = 1000

// All returns the sessions that have a record, mail or a wake key, with their records, which
// change while the sessions are alive. The record is nil for a session without one. Many are read at several versions.
// Keys that can't be read are left out.
func All(ctx context.Context, s Store) (map[layout.SessionID][]byte, error) {
	all, keys := map[layout.SessionID][]byte{}, s.Keys()
	for shard := range keys.Shards {
		for _, sub := range []string{layout.SubSessions, layout.SubMailbox, layout.SubWake} {
			prefix := keys.Shard(shard, sub)
			for rest := kv.Prefix(prefix); !rest.Empty(); {
				var next []byte
				err := s.View(ctx, func(tx kv.Attempt) (err error) {
					next, err = add(ctx, tx.Snapshot(), rest, len(prefix), sub == layout.SubSessions, all)
					return err
				})
				if err != nil {
					return nil, err
				}
				rest.Begin = next
			}
		}
	}
	return all, nil
}

// add adds the first sessions of a range, and returns where the others begin.
func add(ctx context.Context, tx kv.Reader, r kv.Range, skip int, records bool, all map[layout.SessionID][]byte,
) (next []byte, err error) {
	for range page {
		first, err := tx.GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(first.Items) == 0 {
			return r.End, err
		}
		item := first.Items[0]
		rest := tuple.NewReader(item.Key[skip:])
		session := layout.SessionID(rest.Text())
		if rest.Err() != nil { // an audit reports it
			r.Begin = kv.After(item.Key)
			continue
		}
		if records {
			all[session] = item.Value
		} else if _, known := all[session]; !known {
			all[session] = nil
		}
		r.Begin = kv.AfterPrefix(item.Key[:len(item.Key)-len(rest.Rest())])
	}
	return r.Begin, nil
}

// Drop removes a session with its mail. Its futures stay, and so do their results. An unknown
// commit is harmless.
func Drop(ctx context.Context, s Store, session layout.SessionID) error {
	keys := s.Keys()
	_, err := s.Transact(ctx, kv.Options{Tag: "futura-session", NoSync: true}, func(tx kv.Attempt) error {
		// The late twin of an attempt can't drop a session that has come back.
		tx.AddReadConflictKey(keys.Session(session))
		tx.Clear(keys.Session(session))
		tx.Clear(keys.SessionWake(session))
		tx.ClearRange(kv.Prefix(keys.Mailbox(session)))
		return nil
	})
	return err
}
