package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

type txState uint8

const (
	txOpen txState = iota
	txCommitting
	txOver
)

// transaction implements kv.Tx. The lock lets Cancel come from anywhere.
type transaction struct {
	store   *Store
	options kv.Options

	mu    sync.Mutex
	state txState
	// work is nil once the transaction is over.
	work *workspace
	// poison is what Commit fails with because of an earlier mistake.
	poison error

	// wanted is the version that SetReadVersion asked for, if it was called.
	wanted    kv.Version
	hasWanted bool
	// epoch keeps what the transaction reads at version from being dropped.
	// It is nil before the first read.
	epoch   *epoch
	version kv.Version
	begun   time.Time
	// turn is what it has to pass on at its end. asked says that it has asked for one.
	turn  *turn
	asked bool
	least kv.Version // that it reads at, unless it was given one

	watches  []*watch
	conflict kv.Version
}

func (t *transaction) conflictVersion() kv.Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conflict
}

// usable is nil while the transaction may be used.
func (t *transaction) usable() error {
	if err := t.store.Err(); err != nil {
		return err
	}
	if t.state != txOpen {
		return kv.ErrUsed
	}
	return nil
}

// enter makes sure that the transaction has a version to read at.
func (t *transaction) enter() error {
	if err := t.usable(); err != nil {
		return err
	}
	s := t.store
	if t.epoch == nil && t.options.Turns && !t.asked {
		if err := t.awaitTurn(); err != nil {
			return err
		}
	}
	if t.epoch != nil {
		if s.expired(t.begun) {
			return kv.ErrTooOld
		}
		return nil
	}
	now := s.options.Clock.Now()
	if !t.hasWanted {
		t.epoch = s.line.enter()
		t.version = max(t.epoch.version, t.least)
	} else {
		if err := s.reached(t.wanted); err != nil {
			return err
		}
		e, err := s.line.enterAt(t.wanted, now)
		if err != nil {
			return err
		}
		t.epoch, t.version = e, t.wanted
	}
	t.begun = now
	return nil
}

// awaitTurn waits for the transaction's turn. It reads what the one before it wrote, which may have committed
// with NoSync, unless it has asked for a version.
func (t *transaction) awaitTurn() error {
	t.asked = true
	t.mu.Unlock()
	turn, last := t.store.turns.take(t.options.Tag)
	t.mu.Lock()
	if turn == nil {
		return nil
	}
	if err := t.usable(); err != nil {
		t.store.turns.end(turn, kv.NoVersion)
		return err
	}
	t.turn, t.least = turn, last
	return nil
}

// ReadVersion implements kv.Tx.
func (t *transaction) ReadVersion(ctx context.Context) (kv.Version, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := t.enter(); err != nil {
		return 0, err
	}
	return t.version, nil
}

// SetReadVersion implements kv.Tx.
func (t *transaction) SetReadVersion(v kv.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.usable() != nil {
		return
	}
	if t.epoch != nil || t.hasWanted {
		t.fail(fmt.Errorf("%w: SetReadVersion after the read version was fixed", kv.ErrUsed))
		return
	}
	t.wanted, t.hasWanted = v, true
}

// fail remembers the first mistake.
func (t *transaction) fail(err error) {
	if t.poison == nil {
		t.poison = err
	}
}

// Commit implements kv.Tx.
func (t *transaction) Commit(ctx context.Context) (kv.Committed, error) {
	none := kv.Committed{Version: kv.NoVersion}
	t.mu.Lock()
	if err := t.usable(); err != nil {
		t.mu.Unlock()
		return none, err
	}
	if err := t.prepare(); err != nil {
		t.close(err)
		t.mu.Unlock()
		return none, err
	}
	if t.work.empty() {
		t.arm(t.version)
		t.close(nil)
		t.mu.Unlock()
		return none, nil
	}
	t.state = txCommitting
	r := &t.work.request
	r.work, r.noSync, r.readVersion = t.work, t.options.NoSync, t.version
	t.mu.Unlock()

	if ctx.Err() != nil {
		return none, t.abandon(nil, ctx)
	}
	t.store.submit(r)
	select {
	case <-r.done:
		return t.settle(r)
	default:
	}
	select {
	case <-r.done:
		return t.settle(r)
	case <-ctx.Done():
		return none, t.abandon(r, ctx)
	}
}

// prepare finds out whether the transaction can be committed.
func (t *transaction) prepare() error {
	if t.poison != nil {
		return t.poison
	}
	if t.work.empty() {
		return nil
	}
	if t.work.size > kv.MaxTxSize {
		return fmt.Errorf("%w: it has %d; split it", kv.ErrTxTooLarge, t.work.size)
	}
	if t.epoch == nil && len(t.work.reads) == 0 && !t.hasWanted {
		return nil
	}
	return t.enter()
}

// abandon gives up waiting. What is under way keeps the workspace.
func (t *transaction) abandon(r *request, ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := fmt.Errorf("%w: %w", kv.ErrUnknownResult, context.Cause(ctx))
	if r != nil {
		t.work = nil
	}
	t.close(err)
	return err
}

// settle ends the transaction by the answer to its commit.
func (t *transaction) settle(r *request) (kv.Committed, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	committed, err := r.committed, r.err
	t.conflict = r.conflict
	if t.options.Turns && errors.Is(err, kv.ErrConflict) {
		t.store.turns.meet(t.options.Tag)
	}
	if err == nil {
		t.arm(committed.Version)
	} else {
		committed = kv.Committed{Version: kv.NoVersion}
	}
	t.passTurn(committed.Version)
	t.close(err)
	return committed, err
}

// passTurn passes on the turn that the transaction has.
func (t *transaction) passTurn(at kv.Version) {
	if t.turn != nil {
		t.store.turns.end(t.turn, at)
		t.turn = nil
	}
}

func (t *transaction) arm(since kv.Version) {
	for _, w := range t.watches {
		t.store.watches.arm(w, since)
	}
	t.watches = nil
}

// close ends the transaction. Watches that were not armed end with err.
func (t *transaction) close(err error) {
	t.state = txOver
	t.passTurn(kv.NoVersion)
	for _, w := range t.watches {
		t.store.watches.end(w, err)
	}
	t.watches = nil
	if t.epoch != nil {
		t.epoch.leave()
		t.epoch = nil
	}
	if t.work != nil {
		t.work.release(&t.store.workspaces)
		t.work = nil
	}
}

// Cancel implements kv.Tx.
func (t *transaction) Cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == txOpen {
		t.close(kv.ErrCancelled)
	}
}

// Watch implements kv.Tx.
func (t *transaction) Watch(key []byte) kv.Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := t.get(key, true)
	if err != nil {
		return failedWatch(&t.store.watches, err)
	}
	w, opened := t.store.watches.open(key, value)
	if opened {
		t.watches = append(t.watches, w)
	}
	return w
}
