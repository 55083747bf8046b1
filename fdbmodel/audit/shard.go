package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// shardParts are the subspaces of a shard.
func (k *checker) shardParts(shard int) []part {
	parts := []part{
		{layout.SubBell, CheckPage, 0, k.lookBells(shard)},
		{layout.SubChunks, CheckLargePage, 0, k.lookChunks(shard)},
		{layout.SubCounts, CheckPage, 0, k.lookCounts(shard)},
		{layout.SubDone, CheckPage, 0, k.lookDone(shard)},
		{layout.SubFutures, CheckPage, 1, k.lookRows(shard)},
		{layout.SubOwners, CheckPage, 0, k.lookOwners(shard)},
		{layout.SubMailbox, CheckLargePage, 0, k.lookMail(shard)},
		{layout.SubSessions, CheckPage, 0, k.lookSessions(shard)},
		{layout.SubWorkers, CheckPage, 1, k.lookWorkers(shard)},
	}
	for _, place := range layout.Places() {
		parts = append(parts, part{layout.SubspaceOf(place.Kind), CheckPage, 0, k.lookPlace(place.Kind, shard)})
	}
	return parts
}

// lookChunks checks which records large values belong to. Their pieces are
// checked with the record that refers to them.
func (k *checker) lookChunks(shard int) look {
	skip := len(k.keys.ChunksOf(shard))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		var last heldRef
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			id, ref, i := layout.ID(rest.UUID()), layout.ChunkRef{Kind: rest.Text(), Token: rest.Text()}, rest.Int()
			known := ref.Kind == layout.ChunkArgs || ref.Kind == layout.ChunkResult || ref.Kind == layout.ChunkStderr
			if rest.Done() != nil || !known || i < 0 || id.Shard(k.keys.Shards) != shard {
				f.broken(InvariantKey, item.Key, "no large value has such a piece")
				continue
			}
			if last == (heldRef{id, ref}) {
				continue
			}
			last = heldRef{id, ref}
			row, _, err := read.Record(tx, k.keys, id).Wait(ctx)
			switch {
			case layout.IsUnreadable(err):
				// The record is reported by the check of its row.
			case err != nil:
				return err
			case !row.RefersTo(ref) && !k.cluster.MayRefer(&row, ref):
				f.pending(InvariantChunks, item.Key, "nothing refers to this %s of future %s; it is to be swept", ref.Kind, id)
			}
		}
		return nil
	}
}

// checkPieces reads a large value, as long as its record refers to it.
func (k *checker) checkPieces(ctx context.Context, held heldRef) error {
	ref := held.ref
	key := k.keys.Chunks(held.id, ref)
	var f findings
	defer func() { k.take(&f) }()
	if ref.Size < 0 || ref.Count != layout.Pieces(ref.Size) {
		f.broken(InvariantChunks, key, "%s of future %s has %d bytes in %d pieces", ref.Kind, held.id, ref.Size, ref.Count)
		return nil
	}
	for first := 0; first < ref.Count; first += CheckLargePage {
		n := min(CheckLargePage, ref.Count-first)
		var wrong string
		held := held
		err := k.cluster.View(ctx, func(tx kv.Attempt) error {
			wrong = ""
			asked := read.Record(tx.Snapshot(), k.keys, held.id)
			var pending [CheckLargePage]kv.Pending[[]byte]
			for i := range n {
				pending[i] = tx.Snapshot().Get(k.keys.Chunk(held.id, ref, first+i))
			}
			row, _, err := asked.Wait(ctx)
			if err != nil || !row.RefersTo(ref) {
				return err
			}
			for i := range n {
				value, err := pending[i].Wait(ctx)
				if err != nil {
					return err
				}
				want := min(layout.ChunkSize, int(ref.Size)-(first+i)*layout.ChunkSize)
				if value == nil || len(value) != want {
					wrong = fmt.Sprintf("piece %d of %d of the %s of future %s has %d bytes, not %d",
						first+i+1, ref.Count, ref.Kind, held.id, len(value), want)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if wrong != "" {
			f.broken(InvariantChunks, key, "%s", wrong)
			return nil
		}
	}
	return nil
}

func (k *checker) lookCounts(shard int) look {
	prefix := k.keys.CountsOf(shard)
	return func(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
		for _, item := range items {
			_, _, err := layout.ParseCount(prefix, item)
			f.decoded(item.Key, err)
		}
		return nil
	}
}

// checkCounts compares the counters of a shard with the counted futures, and
// counts once more, at one version, where they differ.
func (k *checker) checkCounts(ctx context.Context, shard int) error {
	if k.unreadable {
		return nil
	}
	var counters map[layout.ShardCount]int64
	err := k.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		counters, err = k.readCounters(ctx, tx.Snapshot(), shard)
		return err
	})
	if err != nil || maps.Equal(counters, k.counted) {
		return err
	}
	var counted map[layout.ShardCount]int64
	settled, err := k.atOneVersion(ctx, fmt.Sprintf("counters of shard %d", shard), func(tx kv.Reader) (err error) {
		if counters, err = k.readCounters(ctx, tx, shard); err == nil {
			counted, err = k.countRows(ctx, tx, shard)
		}
		return err
	})
	if err != nil || !settled {
		return err
	}
	var f findings
	for key := range joinKeys(counters, counted) {
		if counters[key] != counted[key] {
			f.broken(InvariantCounts, k.keys.Count(shard, key.Queue, key.Owner, key.State),
				"there are %d %v futures of queue %q and owner %q in shard %d, and the counter says %d",
				counted[key], key.State, key.Queue, key.Owner, shard, counters[key])
		}
	}
	k.take(&f)
	return nil
}

// atOneVersion calls fn with reads at one version, and adds what to Unsettled
// if fn takes longer than a store allows.
func (k *checker) atOneVersion(ctx context.Context, what string, fn func(tx kv.Reader) error) (bool, error) {
	const attempts = 3
	retry := k.cluster.RetryPolicy(kv.Options{Tag: "futura-read"})
	retry.MaxAttempts = attempts
	_, err := kv.Transact(ctx, k.cluster.Database(), retry, func(tx kv.Attempt) error { return fn(tx.Snapshot()) })
	if kv.Retryable(err) && ctx.Err() == nil {
		k.report.Unsettled = append(k.report.Unsettled, what)
		return false, nil
	}
	return err == nil, err
}

func joinKeys[K comparable](a, b map[K]int64) map[K]struct{} {
	keys := map[K]struct{}{}
	for key := range a {
		keys[key] = struct{}{}
	}
	for key := range b {
		keys[key] = struct{}{}
	}
	return keys
}

// readCounters leaves out counters that are zero.
func (k *checker) readCounters(ctx context.Context, tx kv.Reader, shard int) (map[layout.ShardCount]int64, error) {
	prefix := k.keys.CountsOf(shard)
	counters := map[layout.ShardCount]int64{}
	err := eachOf(ctx, tx, kv.Prefix(prefix), func(item kv.KeyValue) {
		if key, n, err := layout.ParseCount(prefix, item); err == nil && n != 0 {
			counters[layout.ShardCount{Shard: shard, CountKey: key}] = n
		}
	})
	return counters, err
}

// countRows counts the futures of a shard at the version of tx.
func (k *checker) countRows(ctx context.Context, tx kv.Reader, shard int) (map[layout.ShardCount]int64, error) {
	counted := map[layout.ShardCount]int64{}
	skip := len(k.keys.FuturesOf(shard))
	var row layout.Row
	flush := func() {
		if row.Spec != nil {
			counted[layout.CountOf(shard, row.Spec, row.State())]++
		}
	}
	err := eachOf(ctx, tx, kv.Prefix(k.keys.FuturesOf(shard)), func(item kv.KeyValue) {
		rest := tuple.NewReader(item.Key[skip:])
		if id := layout.ID(rest.UUID()); id != row.ID {
			flush()
			row = layout.Row{ID: id}
		}
		// An unreadable record was reported before, or will be next time.
		_ = row.Add(item, rest)
	})
	flush()
	return counted, err
}

// eachOf calls fn for each key of a range at the version of tx.
func eachOf(ctx context.Context, tx kv.Reader, r kv.Range, fn func(kv.KeyValue)) error {
	for {
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: CheckPage}).Wait(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			fn(item)
		}
		if !page.More {
			return nil
		}
		r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
}

func (k *checker) lookDone(shard int) look {
	skip := len(k.keys.DoneOf(shard))
	return func(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			if rest.Stamp(); rest.Done() != nil {
				f.broken(InvariantKey, item.Key, "no list of finished futures has this key")
				continue
			}
			var entry layout.DoneEntry
			err := layout.Decode(item.Key, item.Value, &entry)
			if err == nil && len(entry.IDs)%len(layout.ID{}) != 0 {
				err = fmt.Errorf("%s: %w: %d bytes of ids", tuple.String(item.Key), layout.ErrBadRecord, len(entry.IDs))
			}
			f.decoded(item.Key, err)
		}
		return nil
	}
}

// settleTerminals looks for the finished futures met so far in the done lists
// of all shards. The lists are read after the futures, so a future that is in
// none was removed since, or is missing there.
func (k *checker) settleTerminals(ctx context.Context) error {
	if len(k.terminals) == 0 {
		return nil
	}
	for shard := range k.keys.Shards {
		err := k.cluster.EachKey(ctx, kv.Prefix(k.keys.DoneOf(shard)), func(item kv.KeyValue) error {
			var entry layout.DoneEntry
			if layout.Decode(item.Key, item.Value, &entry) == nil {
				for _, id := range layout.UnpackIDs(entry.IDs) {
					if at, found := k.terminals[id]; found && at <= entry.At {
						delete(k.terminals, id)
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var f findings
	for id, at := range k.terminals {
		row, err := k.cluster.Get(ctx, id)
		switch {
		case errors.Is(err, fdbmodel.ErrNotFound) || layout.IsUnreadable(err):
		case err != nil:
			return err
		case row.State().Terminal() && row.FinishedAt() == at:
			f.broken(InvariantDone, k.keys.Spec(id), "future %s is %v and in no done list", id, row.State())
		}
	}
	k.take(&f)
	clear(k.terminals)
	return nil
}

func (k *checker) lookBells(shard int) look {
	skip := len(k.keys.Shard(shard, layout.SubBell))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			session := layout.SessionID(rest.Text())
			if rest.Done() != nil || !bytes.Equal(k.keys.Bell(session), item.Key) {
				f.broken(InvariantKey, item.Key, "no session's bell has this key")
				continue
			}
			_, err := layout.DecodeStamped(item.Key, item.Value, &layout.Bell{})
			f.decoded(item.Key, err)
			record, err := tx.Get(k.keys.Session(session)).Wait(ctx)
			if err != nil {
				return err
			}
			if record == nil {
				f.pending(InvariantMail, item.Key, "session %s has no record; its bell is to be swept", session)
			}
		}
		return nil
	}
}

func (k *checker) lookMail(shard int) look {
	skip := len(k.keys.Shard(shard, layout.SubMailbox))
	return func(ctx context.Context, tx kv.Reader, items []kv.KeyValue, f *findings) error {
		var last layout.SessionID
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			session := layout.SessionID(rest.Text())
			if rest.Stamp(); rest.Done() != nil || !bytes.HasPrefix(item.Key, k.keys.Mailbox(session)) {
				f.broken(InvariantKey, item.Key, "no mail has this key")
				continue
			}
			notices, err := layout.AppendNotices(nil, item)
			f.decoded(item.Key, err)
			for _, n := range notices {
				if !n.State.Terminal() {
					f.broken(InvariantMail, item.Key, "a notice says that future %s is %v", n.ID, n.State)
				}
			}
			if session == last {
				continue
			}
			last = session
			bell, err := tx.Get(k.keys.Bell(session)).Wait(ctx)
			if err != nil {
				return err
			}
			if bell == nil {
				f.broken(InvariantMail, item.Key, "session %s has mail and no bell", session)
			}
		}
		return nil
	}
}

func (k *checker) lookSessions(shard int) look {
	skip := len(k.keys.Shard(shard, layout.SubSessions))
	return func(_ context.Context, _ kv.Reader, items []kv.KeyValue, f *findings) error {
		for _, item := range items {
			rest := tuple.NewReader(item.Key[skip:])
			if session := layout.SessionID(rest.Text()); rest.Done() != nil || !bytes.Equal(k.keys.Session(session), item.Key) {
				f.broken(InvariantKey, item.Key, "no session has this key")
				continue
			}
			f.decoded(item.Key, layout.Decode(item.Key, item.Value, new(layout.SessionRecord)))
		}
		return nil
	}
}
