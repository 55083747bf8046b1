// Package member reads the workers of a cluster.
package member

import (
	"context"
	"sort"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Model is what reading workers needs of the model.
type Model interface {
	View(context.Context, func(kv.Attempt) error) error
	EachKey(context.Context, kv.Range, func(kv.KeyValue) error) error
	Keys() layout.Keyspace
	Config() layout.Config
}

// Member is a worker as the store knows it.
type Member struct {
	layout.WorkerInfo
	Heartbeat layout.Heartbeat `json:"heartbeat"`
	// Alive is false while a dead worker's claims are being taken back.
	Alive bool `json:"alive"`
	// Claims is the number of claim batches that it holds.
	Claims int `json:"claim_batches"`
	// Unreadable says why the worker's records can't be read, such as that a
	// newer version of Futura wrote them. Only ID, Alive, Claims and Beat are
	// filled in then.
	Unreadable string `json:"unreadable,omitempty"`
	// Beat is the heartbeat's bytes: they change while the worker is alive.
	Beat []byte `json:"-"`
}

// FitsClass reports whether a member with these labels has the room and the labels
// that futures of a class require.
func (m *Member) FitsClass(c *layout.Class, labels layout.LabelSet) bool {
	return m.Capacity.Fit(c.Requirements()) && labels.Have(c.Labels)
}

// Silence is the age of the worker's last heartbeat, by its clock and the
// caller's, 0 if it can't be read. It is for display: the decision whether a
// worker is dead never compares clocks.
func (m *Member) Silence(now time.Time) time.Duration {
	if m.Heartbeat.At == 0 {
		return 0
	}
	return max(now.Sub(time.UnixMilli(m.Heartbeat.At)), 0)
}

// All returns all workers, sorted by id, from pages at different versions.
func All(ctx context.Context, m Model) ([]Member, error) {
	var members []Member
	for shard := range m.Config().Shards {
		prefix := m.Keys().Shard(shard, layout.SubWorkers)
		err := m.EachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) (err error) {
			members, err = add(members, prefix, item)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	sort.Slice(members, func(i, j int) bool { return members[i].ID < members[j].ID })
	return members, nil
}

const (
	maxSome  = 64  // workers that Some returns
	somePage = 256 // keys of workers that it reads in a shard
)

// Some returns registered workers other than one, a bounded number of them, from a shard on.
func Some(ctx context.Context, m Model, first int, but layout.WorkerID) ([]Member, error) {
	var some []Member
	shards := m.Config().Shards
	err := m.View(ctx, func(tx kv.Attempt) error {
		some = nil
		for n := range shards {
			prefix := m.Keys().Shard((first+n)%shards, layout.SubWorkers)
			page, err := tx.Snapshot().GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: somePage}).Wait(ctx)
			if err != nil {
				return err
			}
			var members []Member
			for _, item := range page.Items {
				if members, err = add(members, prefix, item); err != nil {
					return err
				}
			}
			for _, m := range members {
				if m.Alive && m.ID != but && len(some) < maxSome {
					some = append(some, m)
				}
			}
			if len(some) == maxSome {
				break
			}
		}
		return nil
	})
	return some, err
}

// add adds what a key says of a worker, whose keys come one after the other.
func add(members []Member, prefix []byte, item kv.KeyValue) ([]Member, error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	id, field := layout.WorkerID(rest.Text()), rest.Text()
	if rest.Err() != nil {
		return members, nil // an audit reports it
	}
	if n := len(members); n == 0 || members[n-1].ID != id {
		members = append(members, Member{WorkerInfo: layout.WorkerInfo{ID: id}})
	}
	m := &members[len(members)-1]
	switch field {
	case layout.WorkerAlive:
		m.Alive = true
		return members, m.note(layout.Decode(item.Key, item.Value, &m.WorkerInfo))
	case layout.WorkerHeartbeat:
		m.Beat = item.Value
		return members, m.note(layout.Decode(item.Key, item.Value, &m.Heartbeat))
	case layout.WorkerClaims:
		m.Claims++
	}
	return members, nil
}

// note records unreadable records. They don't prevent reading those of other
// workers.
func (m *Member) note(err error) error {
	if layout.IsUnreadable(err) {
		m.WorkerInfo, m.Unreadable = layout.WorkerInfo{ID: m.ID}, err.Error()
		return nil
	}
	return err
}
