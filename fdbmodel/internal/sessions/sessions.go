// Package sessions finds and drops the sessions of clients.
package sessions

import (
	"context"
	"slices"

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
		var left []part
		for _, sub := range []string{layout.SubSessions, layout.SubMailbox, layout.SubWake} {
			prefix := keys.Shard(shard, sub)
			left = append(left, part{kv.Prefix(prefix), len(prefix), sub == layout.SubSessions})
		}
		for len(left) > 0 {
			var behind []part
			err := s.View(ctx, func(tx kv.Attempt) (err error) {
				behind, err = add(ctx, tx.Snapshot(), slices.Clone(left), all)
				return err
			})
			if err != nil {
				return nil, err
			}
			left = behind
		}
	}
	return all, nil
}

// part is a range of keys with sessions behind a prefix: their records, or what else they have.
type part struct {
	kv.Range
	skip    int
	records bool
}

// add adds the first sessions of some parts, and returns what is behind them.
func add(ctx context.Context, tx kv.Reader, left []part, all map[layout.SessionID][]byte) ([]part, error) {
	for n := 0; n < page && len(left) > 0; n++ {
		p := &left[0]
		first, err := tx.GetRange(p.Range, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil {
			return nil, err
		}
		if len(first.Items) == 0 {
			left = left[1:]
			continue
		}
		item := first.Items[0]
		rest := tuple.NewReader(item.Key[p.skip:])
		session := layout.SessionID(rest.Text())
		if rest.Err() != nil { // an audit reports it
			p.Begin = kv.After(item.Key)
			continue
		}
		if p.records {
			all[session] = item.Value
		} else if _, known := all[session]; !known {
			all[session] = nil
		}
		p.Begin = kv.AfterPrefix(item.Key[:len(item.Key)-len(rest.Rest())])
	}
	return left, nil
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
