package sim

import (
	"bytes"
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/taskcontext"
)

// rows begins the keys of what the application keeps beside Futura, in the same store.
const rows = "app/"

func (s stepOf) row() []byte { return []byte(rows + s.id.String() + "/" + s.name) }

// hasRow reports whether a step writes a row of the application in its transaction.
func (w *world) hasRow(name string) bool { return w.options.Actors > 0 && name == "after" }

// recordWithRow records a step, and adds what it returns to its row.
func (w *world) recordWithRow(ctx context.Context, log taskcontext.Steps, of stepOf, full string,
	record taskcontext.RecordedStep,
) error {
	_, _, err := log.RecordTx(ctx, full, record, func(ctx context.Context, tx kv.Tx) ([]byte, error) {
		before, err := tx.Get(of.row()).Wait(ctx)
		if err == nil {
			tx.Set(of.row(), append(append([]byte(nil), before...), record.Value...))
		}
		return record.Value, err
	})
	return err
}

// checkRow requires that the row of a step has what is recorded of it, once, and nothing if nothing is.
func (w *world) checkRow(ctx context.Context, of stepOf, recorded string) error {
	if !w.hasRow(of.name) {
		return nil
	}
	var row []byte
	err := w.reader.View(ctx, func(tx kv.Attempt) (err error) {
		row, err = tx.Get(of.row()).Wait(ctx)
		return err
	})
	if err == nil && string(row) != recorded {
		err = fmt.Errorf("step %s of future %s is %q, and its row is %q", of.name, of.id, recorded, row)
	}
	return err
}

func dropRow(_ *tx, m *mutation) {
	if m.verb != setKey || !bytes.HasPrefix(m.key.Raw, []byte(rows)) {
		m.do()
	}
}

func doubleRow(t *tx, m *mutation) {
	if m.do(); m.verb == setKey && bytes.HasPrefix(m.key.Raw, []byte(rows)) {
		t.Tx.Set(m.key.Raw, append(append([]byte(nil), m.value...), m.value...))
	}
}
