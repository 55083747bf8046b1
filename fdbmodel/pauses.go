package fdbmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// MaxPauses is how many queues and functions may be paused at a time.
const MaxPauses = 1000

// Pause is a queue, or a function, that no worker takes futures of.
type Pause struct {
	// What is layout.PauseQueue or layout.PauseFunction.
	What, Name string
	layout.PauseRecord
}

// Pause keeps workers from taking futures of a queue, or of a function, until Resume is
// called; what they have taken runs. A module is paused with all of its methods, and an
// alias is resolved now. Workers of this Cluster take no more once Pause returns, apart
// from a claim that is under way; others take no more after their next heartbeat, and one
// without heartbeats is declared dead. Pausing again changes the reason, which has at most
// 256 bytes. It returns ErrBadName, ErrBadSpec, ErrTooLarge above MaxPauses, and
// ErrNotFound for an unknown alias. An unknown commit is retried and harmless.
func (c *Cluster) Pause(ctx context.Context, what, name, reason string) (Pause, error) {
	if len(reason) > layout.MaxPauseReason {
		return Pause{}, fmt.Errorf("%w: reason of %d bytes: at most %d", layout.ErrBadSpec, len(reason),
			layout.MaxPauseReason)
	}
	name, err := c.resolvePause(ctx, what, name)
	if err != nil {
		return Pause{}, err
	}
	pause := Pause{What: what, Name: name}
	err = c.changePauses(ctx, func(tx kv.Attempt) error {
		key := c.keys.Pause(what, name)
		asked := tx.Get(key)
		page, err := tx.GetRange(kv.Prefix(c.keys.Pauses()), kv.RangeOptions{Limit: MaxPauses}).Wait(ctx)
		if err != nil {
			return err
		}
		was, err := asked.Wait(ctx)
		if err != nil {
			return err
		}
		pause.PauseRecord = layout.PauseRecord{}
		if was != nil {
			if err := layout.Decode(key, was, &pause.PauseRecord); err != nil {
				return err
			}
		} else if len(page.Items) == MaxPauses {
			return fmt.Errorf("%w: %s %s: %d queues and functions are paused, the most that may be: resume some", ErrTooLarge,
				what, name, MaxPauses)
		}
		pause.At, pause.Reason = cmp.Or(pause.At, layout.Millis(c.clock.Now())), reason
		tx.Set(key, layout.Encode(&pause.PauseRecord))
		return nil
	})
	return pause, err
}

// Resume ends a Pause, and reports whether there was one. Workers of this Cluster look
// for work at once, others with their next heartbeat. It returns ErrBadName. An unknown
// commit is retried; a pause that is gone by then was ended.
func (c *Cluster) Resume(ctx context.Context, what, name string) (bool, error) {
	function, err := c.resolvePause(ctx, what, name)
	switch {
	case err == nil:
		name = function
	case !errors.Is(err, ErrNotFound): // a module that was removed stays paused
		return false, err
	}
	paused := false
	err = c.changePauses(ctx, func(tx kv.Attempt) error {
		key := c.keys.Pause(what, name)
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

// resolvePause returns the name that futures have for what is to be paused.
func (c *Cluster) resolvePause(ctx context.Context, what, name string) (string, error) {
	if err := layout.CheckPause(what, name); err != nil || what != layout.PauseFunction {
		return name, err
	}
	return c.ResolveFunction(ctx, name)
}

// changePauses runs a transaction that changes what is paused, and has the workers of the
// process obey.
func (c *Cluster) changePauses(ctx context.Context, fn func(kv.Attempt) error) error {
	result, err := c.Transact(ctx, kv.Options{Tag: "futura-pause"}, fn)
	if err != nil {
		return err
	}
	return c.View(ctx, func(tx kv.Attempt) error {
		if tx.Number == 1 && result.Version != kv.NoVersion {
			tx.SetReadVersion(result.Version)
		}
		seen, err := c.askPauses(tx).wait(ctx)
		if err == nil {
			c.pauses.learn(seen, c.hub)
		}
		return err
	})
}

// Pauses returns what is paused, queues last, in the order of the names.
func (c *Cluster) Pauses(ctx context.Context) ([]Pause, error) {
	var list []Pause
	err := c.View(ctx, func(tx kv.Attempt) error {
		list = nil
		page, err := tx.Snapshot().GetRange(kv.Prefix(c.keys.Pauses()), kv.RangeOptions{Limit: MaxPauses}).Wait(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			key := layout.ParseKey(item.Key)
			p := Pause{What: key.Text("what"), Name: key.Text("name")}
			if err := layout.Decode(item.Key, item.Value, &p.PauseRecord); err != nil {
				return err
			}
			list = append(list, p)
		}
		return nil
	})
	return list, err
}

// PauseOf returns the pause that keeps workers from taking futures of a queue and a
// function, and false if there is none.
func PauseOf(pauses []Pause, queue, function string) (Pause, bool) {
	for _, p := range pauses {
		if p.What == layout.PauseQueue && p.Name == queue || p.What == layout.PauseFunction && isPart(function, p.Name) {
			return p, true
		}
	}
	return Pause{}, false
}

// isPart reports whether a function is another one, or a method of that module.
func isPart(function, of string) bool {
	rest, found := strings.CutPrefix(function, of)
	return found && (rest == "" || rest[0] == '/')
}

// pauses is what a process knows to be paused. Claims read it instead of the store.
type pauses struct {
	mu    sync.Mutex
	known atomic.Pointer[pausesSeen]
}

// pausesSeen is what was paused at a version.
type pausesSeen struct {
	at   kv.Version
	list []Pause
}

// askedPauses is a read of what is paused.
type askedPauses struct {
	tx   kv.Attempt
	page kv.Pending[kv.Page]
}

func (c *Cluster) askPauses(tx kv.Attempt) askedPauses {
	return askedPauses{tx, tx.Snapshot().GetRange(kv.Prefix(c.keys.Pauses()), kv.RangeOptions{Limit: MaxPauses})}
}

// wait returns what is paused. The name suffices: a newer record pauses as well.
func (a askedPauses) wait(ctx context.Context) (*pausesSeen, error) {
	page, err := a.page.Wait(ctx)
	if err != nil {
		return nil, err
	}
	seen := &pausesSeen{}
	for _, item := range page.Items {
		key := layout.ParseKey(item.Key)
		seen.list = append(seen.list, Pause{What: key.Text("what"), Name: key.Text("name")})
	}
	seen.at, err = a.tx.ReadVersion(ctx)
	return seen, err
}

// learn replaces what is known by what was read at a later version, and wakes idle workers
// if something was resumed.
func (p *pauses) learn(seen *pausesSeen, h *hub) {
	p.mu.Lock()
	was := p.known.Load()
	if was != nil && seen.at < was.at {
		p.mu.Unlock()
		return
	}
	p.known.Store(seen)
	p.mu.Unlock()
	if was == nil {
		return
	}
	for _, before := range was.list {
		if !seen.has(before.What, before.Name) {
			h.wakeAll()
			return
		}
	}
}

func (s *pausesSeen) has(what, name string) bool {
	for _, p := range s.list {
		if p.What == what && p.Name == name {
			return true
		}
	}
	return false
}

// any reports whether anything is paused.
func (p *pauses) any() bool {
	known := p.known.Load()
	return known != nil && len(known.list) > 0
}

// queue reports whether a queue is paused.
func (p *pauses) queue(name string) bool {
	known := p.known.Load()
	return known != nil && known.has(layout.PauseQueue, name)
}

// function reports whether a function is paused.
func (p *pauses) function(name string) bool {
	known := p.known.Load()
	if known == nil {
		return false
	}
	_, paused := PauseOf(known.list, "", name)
	return paused
}

// queues returns those queues of a worker that are not paused.
func (r *Registration) queues() []string {
	if !r.cluster.pauses.any() {
		return r.info.Queues
	}
	return r.cluster.pauses.keep(r.info.Queues, r.cluster.pauses.queue)
}

// keep returns the names that are not paused.
func (p *pauses) keep(names []string, paused func(string) bool) []string {
	kept := make([]string, 0, len(names))
	for _, name := range names {
		if !paused(name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// runs returns which functions a worker wants futures of: those of a request, or all that
// it can run, apart from those that are paused.
func (r *Registration) runs(asked func(string) bool) func(string) bool {
	if asked == nil {
		asked = r.info.Runs
	}
	if !r.cluster.pauses.any() {
		return asked
	}
	return func(function string) bool { return asked(function) && !r.cluster.pauses.function(function) }
}

// able returns what a worker could take at present, of what is not paused.
func (r *Registration) able() layout.WorkerInfo {
	info := r.info
	if info.Queues = r.queues(); r.cluster.pauses.any() {
		info.Functions = r.cluster.pauses.keep(info.Functions, r.cluster.pauses.function)
	}
	return info
}
