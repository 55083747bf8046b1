package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// RunProgram runs p on db below a random prefix, which it clears in the end,
// and returns what happened, a line for each step. Commits are numbered, and
// stamps are shown by the number of their commit, so equal stores give equal
// lines. Many programs may run on one store at a time.
//
// An error means that the run says nothing about the store, for instance
// because a transaction took too long, and that another run may.
func RunProgram(ctx context.Context, db kv.Database, p Program) ([]string, error) {
	r := &run{ctx: ctx, db: db, prefix: append(randomPrefix(), 'p', '/')}
	defer r.end()
	for _, s := range p.Steps {
		if err := r.step(s); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	if err := r.dump(); err != nil {
		return nil, err
	}
	return r.lines, nil
}

// run is one run of a program.
type run struct {
	ctx     context.Context
	db      kv.Database
	prefix  []byte
	lines   []string
	slots   [programSlots]*slot
	commits []kv.Committed
	// stamped is set when a stamped key was committed at what may be the
	// newest version.
	stamped bool
}

// slot is an open transaction of a program.
type slot struct {
	kv.Tx
	old     bool
	stamped bool
	asked   []func() error
}

func (r *run) note(s Step, format string, args ...any) {
	r.lines = append(r.lines, s.String()+fmt.Sprintf(format, args...))
}

// key returns a program's key. What lies behind the last of them is "w".
func (r *run) key(name string) []byte { return append(bytes.Clone(r.prefix), name...) }

func (r *run) span(s Step) kv.Range { return kv.Range{Begin: r.key(s.key), End: r.key(s.end)} }

func (r *run) step(s Step) error {
	switch s.kind {
	case stepBegin, stepBeginAt:
		return r.begin(s)
	}
	t := r.slots[s.slot]
	if t == nil {
		return nil
	}
	switch s.kind {
	case stepGet, stepScan:
		return r.read(s, t)
	case stepWait:
		return r.wait(s, t)
	case stepCommit:
		if err := r.wait(s, t); err != nil || r.slots[s.slot] == nil {
			return err
		}
		return r.commit(s, t)
	case stepCancel:
		err := r.wait(s, t)
		t.Cancel()
		r.slots[s.slot] = nil
		r.note(s, "")
		return err
	}
	if r.undetermined(s, t) {
		return nil
	}
	r.write(s, t)
	r.note(s, "")
	return nil
}

// begin starts a transaction and fixes its read version, which is above that of
// every stamped key: the contract leaves open whether a key of just the read
// version is readable behind an own stamped key.
func (r *run) begin(s Step) error {
	if r.slots[s.slot] != nil {
		r.slots[s.slot].Cancel()
	}
	if r.stamped {
		if err := r.newVersion(); err != nil {
			return err
		}
		r.stamped = false
	}
	t := &slot{Tx: r.db.Begin(kv.Options{})}
	if s.kind == stepBeginAt && s.number < len(r.commits) {
		t.old = true
		t.SetReadVersion(r.commits[len(r.commits)-1-s.number].Version)
	}
	version, err := t.ReadVersion(r.ctx)
	if err != nil {
		return err
	}
	verdict := ""
	if n := len(r.commits); n > 0 && !t.old && version < r.commits[n-1].Version {
		verdict = ": the read version lies before the last commit"
	}
	r.slots[s.slot] = t
	r.note(s, "%s", verdict)
	return nil
}

// newVersion commits something beside the program's keys.
func (r *run) newVersion() error {
	tx := r.db.Begin(kv.Options{})
	defer tx.Cancel()
	tx.Set(r.prefix[:len(r.prefix)-2], nil)
	_, err := tx.Commit(r.ctx)
	return err
}

// read asks, and waits at once or later.
func (r *run) read(s Step, t *slot) error {
	reader := kv.Reader(t.Tx)
	if s.snapshot {
		reader = t.Snapshot()
	}
	var answer func() (string, error)
	if s.kind == stepGet {
		pending := reader.Get(r.key(s.key))
		answer = func() (string, error) {
			value, err := pending.Wait(r.ctx)
			return r.showValue(value), err
		}
	} else {
		pending := reader.GetRange(r.span(s), kv.RangeOptions{Limit: s.number, Reverse: s.reverse})
		answer = func() (string, error) {
			page, err := pending.Wait(r.ctx)
			return r.showPage(page), err
		}
	}
	ask := func() error {
		shown, err := answer()
		if err != nil && kv.Retryable(err) {
			return err
		}
		if err != nil {
			shown = condition(err)
			t.Cancel()
			r.slots[s.slot] = nil
		}
		r.note(s, ": %s", shown)
		return nil
	}
	if s.later {
		t.asked = append(t.asked, ask)
		return nil
	}
	return ask()
}

// wait waits for what was asked before.
func (r *run) wait(s Step, t *slot) error {
	for _, ask := range t.asked {
		if r.slots[s.slot] != t {
			return nil
		}
		if err := ask(); err != nil {
			return err
		}
	}
	t.asked = nil
	return nil
}

// undetermined reports whether the contract lets stores differ in s: which
// stamped keys are readable at the very version of their commit.
func (r *run) undetermined(s Step, t *slot) bool { return s.kind == stepStampKey && t.old }

func (r *run) write(s Step, t *slot) {
	switch s.kind {
	case stepSet:
		t.Set(r.key(s.key), []byte(s.value))
	case stepClear:
		t.Clear(r.key(s.key))
	case stepClearRange:
		t.ClearRange(r.span(s))
	case stepAtomic:
		t.Atomic(s.op, r.key(s.key), []byte(s.value))
	case stepStampKey:
		t.stamped = true
		t.SetVersionstampedKey(r.key(s.key+blank+s.end), len(r.prefix)+len(s.key), []byte(s.value))
	case stepStampValue:
		t.SetVersionstampedValue(r.key(s.key), []byte(s.value), s.number)
	case stepReadConflictKey:
		t.AddReadConflictKey(r.key(s.key))
	case stepReadConflictRange:
		t.AddReadConflictRange(r.span(s))
	case stepWriteConflictKey:
		t.AddWriteConflictKey(r.key(s.key))
	case stepWriteConflictRange:
		t.AddWriteConflictRange(r.span(s))
	}
}

func (r *run) commit(s Step, t *slot) error {
	r.slots[s.slot] = nil
	done, err := t.Commit(r.ctx)
	t.Cancel()
	switch {
	case errors.Is(err, kv.ErrConflict):
		r.note(s, ": conflict")
		return nil
	case err != nil && kv.Retryable(err):
		return err
	case err != nil:
		r.note(s, ": %s", condition(err))
		return nil
	case done.Version == kv.NoVersion:
		r.note(s, ": nothing to write")
		return nil
	}
	verdict := ""
	if n := len(r.commits); n > 0 && done.Version <= r.commits[n-1].Version {
		verdict = ", and its version is not above the last"
	}
	r.commits = append(r.commits, done)
	r.stamped = r.stamped || t.stamped
	r.note(s, ": #%d%s", len(r.commits), verdict)
	return nil
}

// dump notes all rows that the program left.
func (r *run) dump() error {
	_, err := kv.Transact(r.ctx, r.db, kv.Retry{}, func(a kv.Attempt) error {
		page, err := a.GetRange(kv.Prefix(r.prefix), kv.RangeOptions{}).Wait(r.ctx)
		if err == nil {
			r.lines = append(r.lines, "in the end: "+r.showPage(page))
		}
		return err
	})
	return err
}

// end cancels what is open and clears the keys.
func (r *run) end() {
	for _, t := range r.slots {
		if t != nil {
			t.Cancel()
		}
	}
	// Rows that stay behind lie below a prefix that is not used again.
	_, _ = kv.Transact(r.ctx, r.db, kv.Retry{MaxAttempts: 3}, func(a kv.Attempt) error {
		a.ClearRange(kv.Prefix(r.prefix[:len(r.prefix)-2]))
		return nil
	})
}

// showValue replaces stamps by the numbers of their commits.
func (r *run) showValue(value []byte) string {
	if value == nil {
		return absent
	}
	for i, done := range r.commits {
		value = bytes.ReplaceAll(value, done.Stamp[:], fmt.Appendf(nil, "<#%d>", i+1))
	}
	return fmt.Sprintf("%q", value)
}

func (r *run) showPage(page kv.Page) string {
	var rows []string
	for _, item := range page.Items {
		name := bytes.TrimPrefix(item.Key, r.prefix)
		rows = append(rows, r.showValue(name)+"="+r.showValue(item.Value))
	}
	if page.More {
		rows = append(rows, "...")
	}
	return strings.Join(rows, " ")
}
