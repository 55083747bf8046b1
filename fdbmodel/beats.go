package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxBeats is the most heartbeats that HeartbeatMany writes.
const MaxBeats = 100

// cancelPage is the maximum number of cancel requests that one heartbeat returns.
const cancelPage = 200

// Beat is the heartbeat of one worker, whose Count and At HeartbeatMany sets.
type Beat struct {
	Worker *Registration
	layout.Heartbeat
}

// BeatAnswer is what a worker learns with its heartbeat.
type BeatAnswer struct {
	// Cancelled are its futures for which a cancel was requested.
	Cancelled []layout.ID
	// Err is ErrReaped if the worker was declared dead; nothing was written for it.
	Err error
}

// Heartbeat writes the worker's heartbeat, whose Count and At it sets, and what Meter and Count
// were told since the last one, as one more mutation each. Call it once per heartbeat interval
// of the cluster. The worker's process learns with it what is paused. It returns the futures
// for which a cancel was requested since the last call, and ErrReaped if the worker was declared
// dead. On an unknown commit some of them may be missing from the answer, but their requests are
// not lost: they are read again when the claim ends.
func (r *Registration) Heartbeat(ctx context.Context, beat layout.Heartbeat) ([]layout.ID, error) {
	answers, err := r.cluster.HeartbeatMany(ctx, []Beat{{r, beat}})
	if err == nil {
		err = answers[0].Err
	}
	if len(answers) == 0 {
		return nil, err
	}
	return answers[0].Cancelled, err
}

// HeartbeatMany is Heartbeat for up to MaxBeats workers of this Cluster, in one
// transaction: it answers in the order of the beats. A worker that was declared dead
// does not concern the others. An error is that of all, such as the store's, and
// ErrTooLarge for too many; the answers then hold what attempts that may have committed have
// found. It reads what is paused once.
func (c *Cluster) HeartbeatMany(ctx context.Context, beats []Beat) ([]BeatAnswer, error) {
	if len(beats) > MaxBeats {
		return nil, fmt.Errorf("%w: %d heartbeats: at most %d at a time", ErrTooLarge, len(beats), MaxBeats)
	}
	values, now := make([]beatValues, len(beats)), c.clock.Now()
	for i := range beats {
		r := beats[i].Worker
		if r.cluster != c {
			return nil, fmt.Errorf("heartbeat of worker %s: it is registered with another Cluster", r.info.ID)
		}
		values[i] = beatValues{r.encodeBeat(beats[i].Heartbeat, now), r.metered.Unwritten(c.keys, &r.info, now)}
	}
	answers := make([]BeatAnswer, len(beats))
	var paused *pause.Seen
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-beat", NoSync: true}, func(tx kv.Attempt) (err error) {
		asked := make([]kv.Pending[kv.Page], len(beats))
		for i := range beats {
			asked[i] = beats[i].Worker.askBeat(tx)
		}
		pauses := pause.Ask(tx, pause.Keys(c.keys))
		for i := range beats {
			if err := beats[i].Worker.beat(ctx, tx, asked[i], values[i], &answers[i]); err != nil {
				return err
			}
		}
		if paused, err = pauses.Wait(ctx); err == nil {
			paused.Beat = now
		}
		return err
	})
	if err != nil {
		return answers, err
	}
	c.learnPauses(paused)
	for i := range beats {
		if answers[i].Err == nil {
			beats[i].Worker.metered.Wrote(values[i].used)
		}
	}
	return answers, nil
}

// beatValues are what a heartbeat writes.
type beatValues struct {
	beat []byte
	used []meter.Record
}

// encodeBeat returns the worker's next heartbeat. With the time in it, a janitor knows which
// minutes of the worker are closed.
func (r *Registration) encodeBeat(beat layout.Heartbeat, now time.Time) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beats++
	beat.Count, beat.At = r.beats, layout.Millis(now)
	return layout.Encode(&beat)
}

// beatKeys are the first and the last of the keys that a heartbeat reads, of which the last is
// a prefix. Between them is but one other.
func (r *Registration) beatKeys() (alive, cancelled []byte) {
	keys := r.cluster.keys
	return keys.Worker(r.info.ID, layout.WorkerAlive), keys.Worker(r.info.ID, layout.WorkerCancelled)
}

// askBeat requests them. A cancel does not conflict with the heartbeat.
func (r *Registration) askBeat(tx kv.Attempt) kv.Pending[kv.Page] {
	alive, cancelled := r.beatKeys()
	tx.AddReadConflictKey(alive)
	own := kv.Range{Begin: alive, End: kv.AfterPrefix(cancelled)}
	return tx.Snapshot().GetRange(own, kv.RangeOptions{Limit: cancelPage + 2})
}

// beat writes a heartbeat, unless the worker was declared dead, and collects the cancels
// for the answer, to which attempts that may have committed have added.
func (r *Registration) beat(ctx context.Context, tx kv.Attempt, asked kv.Pending[kv.Page], values beatValues,
	answer *BeatAnswer,
) error {
	if !tx.MaybeCommitted {
		answer.Cancelled = nil
	}
	page, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	alive, cancelled := r.beatKeys()
	if answer.Err = nil; len(page.Items) == 0 || !bytes.Equal(page.Items[0].Key, alive) {
		answer.Err = r.reaped()
		return nil
	}
	for _, item := range page.Items[1:] {
		if !bytes.HasPrefix(item.Key, cancelled) {
			continue
		}
		rest := tuple.NewReader(item.Key[len(cancelled):])
		answer.Cancelled = append(answer.Cancelled, layout.ID(rest.UUID()))
		tx.Clear(item.Key)
	}
	tx.Set(r.cluster.keys.Worker(r.info.ID, layout.WorkerHeartbeat), values.beat)
	meter.Write(tx, values.used)
	return nil
}
