package modeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// machineSteps are the steps that a machine knows of.
type machineSteps struct {
	// recorded were acknowledged, and perhaps are those of writes that were cut off.
	recorded, perhaps map[layout.ID]map[string]steps.Record
	// last is the last number that a claim has used.
	last map[machineClaim]int
	// rows are those that steps may have written in their transactions.
	rows map[string]bool
	// cleared are futures whose steps an interrupted operation may have cleared.
	cleared map[layout.ID]bool
}

// machineClaim is the claim of one future: several have the same token.
type machineClaim struct {
	id    layout.ID
	token layout.Token
}

func newMachineSteps() machineSteps {
	return machineSteps{
		recorded: map[layout.ID]map[string]steps.Record{}, perhaps: map[layout.ID]map[string]steps.Record{},
		rows: map[string]bool{}, last: map[machineClaim]int{}, cleared: map[layout.ID]bool{},
	}
}

func note(in map[layout.ID]map[string]steps.Record, id layout.ID, name string, r steps.Record) {
	if in[id] == nil {
		in[id] = map[string]steps.Record{}
	}
	in[id][name] = r
}

// recordStep has a worker record a step of a future that it holds, or held.
func (m *Machine) recordStep(ctx context.Context) (change, error) {
	w := m.holder(false)
	if w == nil || len(w.held) == 0 {
		return none, nil
	}
	f := w.held[m.random.IntN(len(w.held))]
	at := steps.Of(m.C)
	last, known := m.steps.last[machineClaim{f.ID, f.Token}]
	first := !known && !f.Steps
	if !known && f.Steps {
		all, err := at.Load(ctx, w.Registration, f)
		if err != nil {
			return none, err
		}
		last = all.Last
	}
	record := steps.Record{Token: f.Token, Number: last + 1, Attempt: f.Attempt(), Value: []byte{byte(last)}, Size: 1,
		At: layout.Millis(m.Clock.Now())}
	name := fmt.Sprint("s", last+1)
	e := steps.Entry{Future: f, Name: name, Record: record, First: first}
	var recorded []bool
	var err error
	if last%2 == 1 {
		recorded, err = m.recordWithRow(ctx, w, e)
	} else {
		recorded, _, err = at.Write(ctx, w.Registration, []steps.Entry{e})
	}
	m.logf("step %s of %s by %s (gone %t): %v %v", name, f.ID, f.Token, w.gone, recorded, err)
	if err != nil {
		note(m.steps.perhaps, f.ID, name, record)
		return none, err
	}
	row := m.Rows[f.ID]
	had := row != nil && row.State() == layout.Claimed && row.Claim.Token == f.Token
	if recorded[0] != had && len(m.loose) == 0 {
		m.fail("a step was recorded: %t, and its claim is held: %t", recorded[0], had)
	}
	if recorded[0] {
		m.steps.last[machineClaim{f.ID, f.Token}] = last + 1
		note(m.steps.recorded, f.ID, name, record)
	}
	return none, nil
}

// recordWithRow records a step with a row of the application, to which it adds the step's value.
func (m *Machine) recordWithRow(ctx context.Context, w *actorWorker, e steps.Entry) ([]bool, error) {
	key := rowOf(e.Future.ID, e.Name, e.Record.Token)
	m.steps.rows[string(key)] = true
	_, _, err := steps.Of(m.C).WriteTx(ctx, w.Registration, e, func(ctx context.Context, tx kv.Tx) ([]byte, error) {
		before, err := tx.Get(key).Wait(ctx)
		if err == nil {
			tx.Set(key, append(append([]byte(nil), before...), e.Record.Value...))
		}
		return e.Record.Value, err
	})
	if errors.Is(err, steps.ErrLost) {
		return []bool{false}, nil
	}
	return []bool{err == nil}, err
}

// rowOf is the key of what the application keeps of a step that a claim has recorded.
func rowOf(id layout.ID, step string, by layout.Token) []byte {
	return fmt.Appendf(nil, "app/%s/%s/%s", id, step, by)
}

// verifyRow requires that the row of a step has its value once, or is absent if the step is.
func (m *Machine) verifyRow(ctx context.Context, id layout.ID, step string, by layout.Token, value []byte) {
	key := rowOf(id, step, by)
	if !m.steps.rows[string(key)] {
		return
	}
	var row []byte
	m.require(m.C.View(ctx, func(tx kv.Attempt) (err error) {
		row, err = tx.Get(key).Wait(ctx)
		return err
	}))
	if !bytes.Equal(row, value) {
		m.fail("step %s of future %s has the value %v, and its row %v", step, id, value, row)
	}
}

// startOver retries a failed future without its steps.
func (m *Machine) startOver(ctx context.Context) (change, error) {
	id := m.some()
	row := m.Rows[id]
	if row == nil || row.State() != layout.Failed || row.Spec.HasInputs() || row.Spec.IsPromise() {
		return none, nil
	}
	err := steps.Of(m.C).StartOver(ctx, id)
	m.logf("start over %s: %v", id, err)
	if m.refusedAsNotUnique(err) || errors.Is(err, fdbmodel.ErrTransition) || errors.Is(err, fdbmodel.ErrNotFound) {
		return none, nil
	}
	if err != nil {
		m.steps.cleared[id] = true
	} else {
		delete(m.steps.recorded, id)
		delete(m.steps.perhaps, id)
	}
	return func(before, after *layout.Row) bool {
		return before != nil && after != nil && after.ID == id && after.State() == layout.Ready &&
			before.State() == layout.Failed && after.Attempts == startedOver(before)
	}, err
}

// verifySteps requires that exactly those steps exist that were recorded, as they were.
func (m *Machine) verifySteps(ctx context.Context) {
	for id, row := range m.Rows {
		found, err := steps.Of(m.C).List(ctx, id)
		m.require(err)
		if row.Steps != (len(found) > 0) {
			m.fail("future %s says that it has steps: %t, and has %d", id, row.Steps, len(found))
		}
		seen := map[string]bool{}
		for i := range found {
			one := &found[i]
			seen[one.Name] = true
			was, recorded := m.steps.recorded[id][one.Name]
			if !recorded {
				if was, recorded = m.steps.perhaps[id][one.Name]; !recorded {
					m.fail("step %s of future %s exists, and none was recorded", one.Name, id)
				}
				note(m.steps.recorded, id, one.Name, was)
			}
			if was.Token != one.Token || was.Number != one.Number || one.Value[0] != was.Value[0] {
				m.fail("step %s of future %s is %+v, recorded was %+v", one.Name, id, one.Record, was)
			}
			m.verifyRow(ctx, id, one.Name, one.Token, one.Value)
		}
		for name, was := range m.steps.perhaps[id] {
			if !seen[name] && !m.steps.cleared[id] {
				m.verifyRow(ctx, id, name, was.Token, nil)
			}
		}
		for name := range m.steps.recorded[id] {
			if !seen[name] && !m.steps.cleared[id] {
				m.fail("step %s of future %s was recorded, and is gone", name, id)
			}
		}
		if len(found) == 0 {
			delete(m.steps.recorded, id)
		}
		if len(m.loose) == 0 {
			delete(m.steps.cleared, id)
		}
	}
	for id := range m.steps.recorded {
		if m.Rows[id] == nil {
			delete(m.steps.recorded, id)
			delete(m.steps.perhaps, id)
		}
	}
}
