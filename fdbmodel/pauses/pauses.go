// Package pauses keeps workers from taking futures of a queue or a function.
package pauses

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Max is how many queues and functions may be paused at a time.
const Max = pause.Max

// Pause is a queue, or a function, that no worker takes futures of: What is
// Queue or Function.
type Pause = pause.Pause

// What can be paused.
const (
	Queue    = pause.Queue
	Function = pause.Function
)

// Find returns the pause that keeps workers from taking futures of a queue and a function,
// and false if there is none.
func Find(list []Pause, queue, function string) (Pause, bool) {
	return pause.Find(list, queue, function)
}

// Pauses is what is paused in one cluster. Its methods may be called from many goroutines.
type Pauses struct {
	cluster *fdbmodel.Cluster
	keys    pause.Keys
}

// Of returns what is paused in a cluster.
func Of(c *fdbmodel.Cluster) *Pauses { return &Pauses{cluster: c, keys: pause.Keys(c.Keys())} }

// Pause keeps workers from taking futures of a queue, or of a function, until Resume is
// called; what they have taken runs. A module is paused with all of its methods, and an
// alias is resolved now. Workers of this Cluster take no more once Pause returns, apart
// from a claim that is under way; others take no more after their next heartbeat, and one
// without heartbeats is declared dead. Pausing again changes the reason, which has at most
// 256 bytes. It returns ErrBadName, ErrBadSpec, ErrTooLarge above Max, and
// ErrNotFound for an unknown alias. An unknown commit is retried and harmless.
func (p *Pauses) Pause(ctx context.Context, what, name, reason string) (Pause, error) {
	if len(reason) > layout.MaxPauseReason {
		return Pause{}, fmt.Errorf("%w: reason of %d bytes: at most %d", layout.ErrBadSpec, len(reason),
			layout.MaxPauseReason)
	}
	name, err := p.resolve(ctx, what, name)
	if err != nil {
		return Pause{}, err
	}
	one := Pause{What: what, Name: name}
	err = p.change(ctx, func(tx kv.Attempt) error {
		key := p.keys.Pause(what, name)
		asked := tx.Get(key)
		page, err := tx.GetRange(kv.Prefix(p.keys.All()), kv.RangeOptions{Limit: Max}).Wait(ctx)
		if err != nil {
			return err
		}
		was, err := asked.Wait(ctx)
		if err != nil {
			return err
		}
		one.Record = pause.Record{}
		if was != nil {
			if err := layout.Decode(key, was, &one.Record); err != nil {
				return fmt.Errorf("%s %s is paused; to pause it anew, resume it first: %w", what, name, err)
			}
		} else if len(page.Items) == Max {
			return fmt.Errorf("%w: %s %s: %d queues and functions are paused, the most that may be: resume some",
				fdbmodel.ErrTooLarge, what, name, Max)
		}
		one.At, one.Reason = cmp.Or(one.At, layout.Millis(p.cluster.Now())), reason
		tx.Set(key, layout.Encode(&one.Record))
		return nil
	})
	return one, err
}

// Resume ends a Pause, and reports whether there was one. Workers of this Cluster look
// for work at once, others with their next heartbeat. It returns ErrBadName. An unknown
// commit is retried; a pause that is gone by then was ended.
func (p *Pauses) Resume(ctx context.Context, what, name string) (bool, error) {
	function, err := p.resolve(ctx, what, name)
	switch {
	case err == nil:
		name = function
	case !errors.Is(err, fdbmodel.ErrNotFound): // a module that was removed stays paused
		return false, err
	}
	paused := false
	err = p.change(ctx, func(tx kv.Attempt) error {
		key := p.keys.Pause(what, name)
		value, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		paused = value != nil || paused && tx.MaybeCommitted
		if value != nil {
			tx.Clear(key)
		}
		return nil
	})
	return paused, err
}

// resolve returns the name that futures have for what is to be paused.
func (p *Pauses) resolve(ctx context.Context, what, name string) (string, error) {
	if err := pause.Check(what, name); err != nil || what != pause.Function {
		return name, err
	}
	return p.cluster.ResolveFunction(ctx, name)
}

// change runs a transaction that changes what is paused, and has the workers of the process
// obey.
func (p *Pauses) change(ctx context.Context, fn func(kv.Attempt) error) error {
	result, err := p.cluster.Transact(ctx, kv.Options{Tag: "futura-pause"}, fn)
	if err != nil {
		return err
	}
	// What was changed stays so if this fails: a heartbeat tells the workers.
	_ = p.cluster.View(ctx, func(tx kv.Attempt) error {
		if tx.Number == 1 && result.Version != kv.NoVersion {
			tx.SetReadVersion(result.Version)
		}
		seen, err := pause.Ask(tx, p.keys).Wait(ctx)
		if err == nil && pause.Of(p.cluster).Learn(seen) {
			p.cluster.Notifier().WakeAll()
		}
		return err
	})
	return nil
}

// List returns what is paused, queues last, in the order of the names. What can't be read is paused, too:
// its reason says so then, and its time is zero.
func (p *Pauses) List(ctx context.Context) ([]Pause, error) {
	var list []Pause
	err := p.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		list, err = p.In(ctx, tx.Snapshot())
		return err
	})
	return list, err
}

// In is List in a transaction of the caller.
func (p *Pauses) In(ctx context.Context, tx kv.Reader) (list []Pause, err error) {
	page, err := tx.GetRange(kv.Prefix(p.keys.All()), kv.RangeOptions{Limit: Max}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	for _, item := range page.Items {
		what, name := pause.Parse(item.Key)
		one := Pause{What: what, Name: name}
		if err := layout.Decode(item.Key, item.Value, &one.Record); err != nil {
			one.Record = pause.Record{Reason: err.Error()}
		}
		list = append(list, one)
	}
	return list, nil
}
