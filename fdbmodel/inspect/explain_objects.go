package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// explainUnplaceable says why none of the workers that have the object which a future
// must be near runs it, and what it waits for.
func explainUnplaceable(ctx context.Context, c *fdbmodel.Cluster, e *Explanation, row *layout.Row,
	members []fdbmodel.Member,
) error {
	copies, err := results.Of(c).Copies(ctx, row.Spec.Near)
	if err != nil {
		return err
	}
	var holders []fdbmodel.Member
	var names []string
	for i := range members {
		if slices.ContainsFunc(copies, func(held results.Copy) bool { return held.Alive && held.Worker == members[i].ID }) {
			holders, names = append(holders, members[i]), append(names, string(members[i].ID))
		}
	}
	near := row.Spec.Near
	found := fit.Of(row.Spec.Needing(&layout.Attempts{RAM: row.Attempts.RAM}), holders)
	switch {
	case len(holders) == 0:
		e.Reason, e.Text = ReasonBlocked, fmt.Sprintf("It must be near the result of future %s, which no worker has any "+
			"more. A janitor finds that within seconds; then it is made again.", near)
	case found.Lack == "":
		e.Reason, e.Text = ReasonAboutToMove, fmt.Sprintf("It must be near the result of future %s. Worker %s has it by "+
			"now and can run this future; a janitor finds that within seconds.", near, found.Able[0].ID)
	default:
		e.Reason = Reason(found.Lack)
		e.Text = fmt.Sprintf("It must be near the result of future %s, and of the workers that "+
			"have that (%s) none can run it. %s Or give a worker that can run it a copy: futura clone %s --to WORKER. "+
			"It waits for either, and a janitor looks every few seconds.",
			near, strings.Join(names[:min(len(names), namedHolders)], ", "), found.Text, near)
	}
	return nil
}

// explainObject says which workers have a result.
func explainObject(ctx context.Context, c *fdbmodel.Cluster, e *Explanation, row *layout.Row) error {
	copies, err := results.Of(c).Copies(ctx, row.ID)
	if err != nil {
		return err
	}
	var names []string
	away := layout.WorkerID("")
	for i := range copies {
		held := &copies[i]
		if !held.Alive && held.Away > layout.Millis(c.Now()) {
			away = held.Worker
		}
		if held.Alive && held.Object == row.Object() {
			e.Holders, names = append(e.Holders, held.Worker), append(names, string(held.Worker))
		}
	}
	size := row.Result.Size
	switch {
	case len(names) > 0:
		more := ""
		if n := len(names) - namedHolders; n > 0 {
			names, more = names[:namedHolders], fmt.Sprintf(" and %d more", n)
		}
		e.Text += fmt.Sprintf(" Its result is an object of %d bytes, held by worker %s%s.", size, strings.Join(names, ", "),
			more)
	case away != "":
		e.Text += fmt.Sprintf(" Its result is an object of %d bytes in the directory of worker %s, which stopped: a worker "+
			"that is started with that directory has it again, and readers wait for a while.", size, away)
	case row.Spec.IsPut() || !row.Spec.AllowReconstruction || row.Attempts.Rebuilt >= fdbmodel.MaxRebuilds:
		e.Text += fmt.Sprintf(" Its result was an object of %d bytes, and no worker that is alive has it: it is lost, and "+
			"its next reader will find that the future has failed.", size)
	default:
		e.Text += fmt.Sprintf(" Its result was an object of %d bytes, and no worker that is alive has it: it is made again "+
			"when it is needed.", size)
	}
	return nil
}

// maxChain is how many failed futures, one an input of the next, are gone back.
const maxChain = 32

// wayOut is what can be done about a future that failed.
func wayOut(ctx context.Context, c *fdbmodel.Cluster, row *layout.Row) (string, error) {
	if row.Spec.IsPut() {
		return "Put the value again, under another id or key: a future that was put can't be retried.", nil
	}
	root, missing := *row, layout.ID{}
	for range maxChain {
		failed, gone, err := badInput(ctx, c, &root)
		if err != nil {
			return "", err
		}
		if missing = gone; failed == nil || !gone.IsZero() {
			break
		}
		root = *failed
	}
	switch {
	case root.Spec.IsPut():
		return fmt.Sprintf("Its input %s was put, and its value is lost: a retry would fail again. Put the value again, "+
			"under another id or key, and submit this future anew with that.", root.ID), nil
	case !missing.IsZero() && root.ID == row.ID:
		return fmt.Sprintf("Its input %s does not exist: a retry fails again, unless a future with that id or key is "+
			"submitted before. Or submit this future anew with another input.", missing), nil
	case !missing.IsZero():
		return fmt.Sprintf("Future %s failed first, and its input %s does not exist: a retry fails again, unless a future "+
			"with that id or key is submitted before. Or submit them anew with another input.", root.ID, missing), nil
	case root.ID == row.ID && row.Spec.IsPromise():
		return "Retry it by hand to have it wait again: its token still opens it.", nil
	case root.ID == row.ID:
		return "Retry it by hand to run it again.", nil
	default:
		return fmt.Sprintf("Future %s failed first: retry that by hand, then those between, then this one.", root.ID), nil
	}
}

// badInput returns the first input that does not exist of a future that has failed, if there is one, as missing: a
// retry would fail again. Otherwise it returns the first one that failed, if the future failed with that.
func badInput(ctx context.Context, c *fdbmodel.Cluster, row *layout.Row) (failed *layout.Row, missing layout.ID,
	err error,
) {
	ids, err := edges.Of(c).FirstInputs(ctx, row.ID, row.Spec, maxInputsRead)
	if err != nil {
		return nil, missing, err
	}
	inputs, unreadable, err := readAll(ctx, c, ids)
	if err != nil {
		return nil, missing, err
	}
	ids = slices.DeleteFunc(ids, func(id layout.ID) bool { return slices.Contains(unreadable, id) })
	upstream := row.Exception != nil && row.Exception.Kind == layout.KindUpstream
	for i, id := range ids {
		switch {
		case i == len(inputs) || inputs[i].ID != id: // they are in the order of ids
			return nil, id, nil
		case upstream && failed == nil && inputs[i].State() == layout.Failed:
			failed = &inputs[i]
		}
	}
	return failed, missing, nil
}

// maxInputsRead is how many inputs of a future are looked at.
const maxInputsRead = 64

// namedHolders is how many of the workers with a copy of a result are named.
const namedHolders = 5
