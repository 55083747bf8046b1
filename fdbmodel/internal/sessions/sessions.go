// Package sessions finds and drops the sessions of clients.
package sessions

import (
	"context"
	"fmt"

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

// page is the maximum number of sessions read from a shard at once.
const page = 1000

// All returns the sessions that have a record, mail or a wake key, with their records, which
// change while the sessions are alive. The record is nil for a session without one.
func All(ctx context.Context, s Store) (map[layout.SessionID][]byte, error) {
	all, keys := map[layout.SessionID][]byte{}, s.Keys()
	for shard := range keys.Shards {
		err := s.View(ctx, func(tx kv.Attempt) error {
			for _, sub := range []string{layout.SubSessions, layout.SubMailbox, layout.SubWake} {
				if err := add(ctx, tx.Snapshot(), keys.Shard(shard, sub), sub == layout.SubSessions, all); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func add(ctx context.Context, tx kv.Reader, prefix []byte, records bool, all map[layout.SessionID][]byte) error {
	r := kv.Prefix(prefix)
	for range page {
		first, err := tx.GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil || len(first.Items) == 0 {
			return err
		}
		item := first.Items[0]
		rest := tuple.NewReader(item.Key[len(prefix):])
		session := layout.SessionID(rest.Text())
		if err := rest.Err(); err != nil {
			return fmt.Errorf("%s: %w: %w", tuple.String(item.Key), layout.ErrBadRecord, err)
		}
		if records {
			all[session] = item.Value
		} else if _, known := all[session]; !known {
			all[session] = nil
		}
		r.Begin = kv.AfterPrefix(item.Key[:len(item.Key)-len(rest.Rest())])
	}
	return nil
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
