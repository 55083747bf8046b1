package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

const (
	// MaxMailValue is the maximum size of one mailbox value, in bytes.
	MaxMailValue = 80_000
	// MaxInlineNotice is the largest outcome that a notice carries itself, in bytes.
	MaxInlineNotice = 512
)

// Mail notifies waiting sessions of the futures that have ended.
type Mail struct {
	*Set
	// Notices are those of the transaction, by session.
	Notices map[layout.SessionID][]layout.Notice
}

// Update implements Index.
func (m *Mail) Update(before, after *layout.Row) {
	if !ends(before, after) || after.Spec.Session == "" && len(after.Subscribers) == 0 {
		return
	}
	if m.Notices == nil {
		m.Notices = map[layout.SessionID][]layout.Notice{}
	}
	notice := NoticeOf(after)
	if s := after.Spec.Session; s != "" {
		m.Notices[s] = append(m.Notices[s], notice)
	}
	for _, s := range after.Subscribers {
		if s != after.Spec.Session {
			m.Notices[s] = append(m.Notices[s], notice)
		}
	}
}

// NoticeOf returns the notice of a future that has ended, with its outcome if that is
// small.
func NoticeOf(row *layout.Row) layout.Notice {
	n := layout.Notice{ID: row.ID, State: row.State()}
	if e := row.Ending(); e.Over() && e.Whole() && e.Size() <= MaxInlineNotice {
		n.Result, n.Exception = e.Result, e.Failure
	}
	return n
}

// Flush implements Index. It packs the notices of each session into as few values as
// possible.
func (m *Mail) Flush(context.Context) error {
	for session, notices := range m.Notices {
		m.send(session, notices)
	}
	return nil
}

func (m *Mail) send(session layout.SessionID, notices []layout.Notice) {
	var part []byte
	n := 0
	put := func() {
		key, offset := tuple.AppendIncompleteStamp(m.Keys.Mailbox(session), m.nextOrder())
		m.Tx.SetVersionstampedKey(key, offset, layout.MailValue(part, n))
		n, part = 0, nil
	}
	for i := range notices {
		before := len(part)
		if part = layout.AppendNotice(part, &notices[i]); len(part) > MaxMailValue && before > 0 {
			last := part[before:]
			part = part[:before]
			put()
			part = append(part, last...)
		}
		n++
	}
	put()
	m.Tx.SetVersionstampedValue(m.Keys.SessionWake(session), layout.EncodeWake(), layout.StampOffset)
}
