// Package mailbox has the notices that clients await: each session has a mailbox, into which the
// transactions that end its futures put theirs.
package mailbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/sessions"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// mailPage is how many mailbox keys one Listen reads.
const mailPage = 100

// Mailbox is one session's place in its mailbox. Listen, Acknowledge, Refresh, Restarted and
// Close belong to one goroutine; the other methods may be called from many.
type Mailbox struct {
	Cluster *fdbmodel.Cluster
	session layout.SessionID
	cursor  []byte // key after the last one read
	acked   []byte
	count   int64

	full      bool // the last page had as many notices as it may have
	restarted bool
}

// Open returns the mailbox of a session, and writes nothing. The session is one process's
// own: if two share it, each misses notices that the other reads.
func Open(c *fdbmodel.Cluster, session layout.SessionID) *Mailbox {
	begin := c.Keys().Mailbox(session)
	return &Mailbox{Cluster: c, session: session, cursor: begin, acked: begin}
}

// Listen returns the notices that have come since the last Listen, in the order
// in which the store committed them. Unless there may be more, it also returns a
// watch that fires when one comes; the caller waits for it or cancels it. No notice
// can be missed in between, because both belong to one read version.
//
// It returns ErrNewerRecord or ErrBadRecord, once, for mail that can't be read,
// and continues after it: Subscribe returns what that mail contained.
func (m *Mailbox) Listen(ctx context.Context) ([]layout.Notice, kv.Watch, error) {
	page, watch, err := m.readPage(ctx, !m.full)
	if kv.Retryable(err) { // the watch was set, and the mail was not read
		page, watch, err = m.readPage(ctx, false)
	}
	if err != nil {
		return nil, nil, err
	}
	m.full = page.More
	notices, err := m.take(page)
	if watch != nil && (page.More || err != nil) {
		watch.Cancel()
		watch = nil
	}
	if layout.IsUnreadable(err) && len(notices) > 0 {
		return notices, nil, nil // it is the first of the next Listen
	}
	return notices, watch, err
}

// readPage reads the mail behind the cursor, and sets a watch in the same transaction unless there may be more. With
// together it waits for both at once, and sets the watch in any case.
func (m *Mailbox) readPage(ctx context.Context, together bool) (page kv.Page, watch kv.Watch, err error) {
	var asked kv.Pending[kv.Page]
	r := kv.Range{Begin: m.cursor, End: kv.AfterPrefix(m.Cluster.Keys().Mailbox(m.session))}
	err = m.Cluster.View(ctx, func(tx kv.Attempt) (err error) {
		watch = nil
		asked = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: mailPage})
		if !together {
			if page, err = asked.Wait(ctx); err != nil || page.More {
				return err
			}
		}
		watch = tx.Watch(m.Cluster.Keys().SessionWake(m.session))
		return nil
	})
	if err == nil && together {
		page, err = asked.Wait(ctx)
	}
	if err != nil && watch != nil {
		watch.Cancel()
	}
	return page, watch, err
}

// take moves the cursor over a page, up to what can't be read, and over that only if it is the first.
func (m *Mailbox) take(page kv.Page) (notices []layout.Notice, err error) {
	for _, item := range page.Items {
		with, err := layout.AppendNotices(notices, item)
		if err != nil && len(notices) > 0 {
			return notices, err
		}
		m.cursor = kv.After(item.Key)
		if err != nil {
			return nil, err
		}
		notices = with
	}
	return notices, nil
}

// Acknowledge removes the mail that Listen has returned. An unknown commit is
// harmless: mail that is not removed is swept when the session ends.
func (m *Mailbox) Acknowledge(ctx context.Context) error {
	if bytes.Equal(m.acked, m.cursor) {
		return nil
	}
	_, err := m.Cluster.Transact(ctx, kv.Options{Tag: "futura-ack", NoSync: true}, func(tx kv.Attempt) error {
		tx.ClearRange(kv.Range{Begin: m.acked, End: m.cursor})
		return nil
	})
	if err == nil {
		m.acked = m.cursor
	}
	return err
}

// Interval is how often a session that awaits anything calls Refresh.
func (m *Mailbox) Interval() time.Duration { return m.Cluster.Config().Heartbeat }

// Refresh is the session's heartbeat, which keeps its mailbox. Call it once per
// Interval while the session awaits anything. If the session
// was dropped meanwhile, or the cluster moved to another store, the mailbox is
// read from its beginning again: the versions in its keys may be lower than
// before. An unknown commit is harmless.
func (m *Mailbox) Refresh(ctx context.Context) error {
	m.count++
	record := layout.SessionRecord{Count: m.count, At: layout.Millis(m.Cluster.Now()),
		Opening: kv.TraitsOf(m.Cluster.Database()).Opening}
	value := layout.Encode(&record)
	gone := false
	_, err := m.Cluster.Transact(ctx, kv.Options{Tag: "futura-session", NoSync: true}, func(tx kv.Attempt) error {
		key := m.Cluster.Keys().Session(m.session)
		before, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		gone = gone || before == nil && m.count > 1
		tx.Set(key, value)
		return nil
	})
	if err == nil && gone {
		m.cursor = m.Cluster.Keys().Mailbox(m.session)
		m.acked, m.restarted = m.cursor, true
	}
	return err
}

// Restarted reports whether a Refresh since the last call found that the
// session had been removed. Mail may have been lost then, and a watch that
// Listen returned before may never fire.
func (m *Mailbox) Restarted() bool {
	restarted := m.restarted
	m.restarted = false
	return restarted
}

// Close removes the session and its mailbox. An unknown commit is harmless: the
// janitor sweeps the rest.
func (m *Mailbox) Close(ctx context.Context) error {
	return sessions.Drop(ctx, m.Cluster, m.session)
}

// Subscribe notifies the session of the end of futures that it did not submit.
// Finished and unknown futures are answered at once: the former with a Notice,
// the latter with ErrNotFound in missing. On a store that can only be read it
// answers for those, and returns kv.ErrReadOnly for the others. Of a future that layout.MaxSubscribers sessions
// await it sends no notice, unless one of those was removed: then it takes its place. Subscribe again to hear of its
// end. An unknown commit is retried and harmless.
func (m *Mailbox) Subscribe(ctx context.Context, ids []layout.ID,
) (over []layout.Notice, missing []layout.ID, refused error) {
	for len(ids) > 0 {
		n := min(len(ids), layout.MaxSubmit)
		o, unknown, err := m.subscribeBatch(ctx, ids[:n])
		if err != nil && !errors.Is(err, kv.ErrReadOnly) {
			return over, missing, err
		}
		refused = cmp.Or(refused, err)
		over, missing, ids = append(over, o...), append(missing, unknown...), ids[n:]
	}
	return over, missing, refused
}

func (m *Mailbox) subscribeBatch(ctx context.Context, ids []layout.ID,
) (over []layout.Notice, missing []layout.ID, err error) {
	keys := m.Cluster.Keys()
	_, err = m.Cluster.Transact(ctx, kv.Options{Tag: "futura-subscribe"}, func(tx kv.Attempt) error {
		over, missing = nil, nil
		pending := make([]read.Pending, len(ids))
		for i, id := range ids {
			pending[i] = read.Record(tx, keys, id)
		}
		for i, id := range ids {
			row, found, err := pending[i].Wait(ctx)
			switch {
			case err != nil:
				return err
			case !found || row.Spec == nil:
				missing = append(missing, id)
			case row.State().Terminal():
				n := index.NoticeOf(&row)
				n.Function = row.Spec.Function
				over = append(over, n)
			case row.Spec.Session == m.session:
			case len(row.Subscribers) >= layout.MaxSubscribers && !slices.Contains(row.Subscribers, m.session):
				left, err := m.dropGone(ctx, tx, &row)
				if err != nil {
					return err
				}
				if left < layout.MaxSubscribers {
					tx.Set(keys.Subscriber(id, m.session), layout.Mark())
				}
			default:
				// The empty value still begins with a version.
				tx.Set(keys.Subscriber(id, m.session), layout.Mark())
			}
		}
		return nil
	})
	return over, missing, err
}

// dropGone ends the subscriptions to a future of sessions that were removed, and returns how many are left. One that
// comes back meanwhile writes its subscription again, and conflicts.
func (m *Mailbox) dropGone(ctx context.Context, tx kv.Tx, row *layout.Row) (left int, err error) {
	keys := m.Cluster.Keys()
	pending := make([]kv.Pending[[]byte], len(row.Subscribers))
	for i, session := range row.Subscribers {
		pending[i] = tx.Snapshot().Get(keys.Session(session))
	}
	for i, session := range row.Subscribers {
		record, err := pending[i].Wait(ctx)
		if err != nil {
			return 0, err
		}
		if record != nil {
			left++
			continue
		}
		tx.Clear(keys.Subscriber(row.ID, session))
	}
	return left, nil
}

// Unsubscribe withdraws a Subscribe. An unknown commit is retried and harmless.
func (m *Mailbox) Unsubscribe(ctx context.Context, ids []layout.ID) error {
	keys := m.Cluster.Keys()
	for len(ids) > 0 {
		n := min(len(ids), layout.MaxSubmit)
		_, err := m.Cluster.Transact(ctx, kv.Options{Tag: "futura-subscribe", NoSync: true}, func(tx kv.Attempt) error {
			// The late twin of an attempt can't undo a Subscribe that follows.
			for _, id := range ids[:n] {
				tx.AddReadConflictKey(keys.Subscriber(id, m.session))
			}
			for _, id := range ids[:n] {
				tx.Clear(keys.Subscriber(id, m.session))
			}
			return nil
		})
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
