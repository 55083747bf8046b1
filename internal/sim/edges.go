package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// drawWidth draws how many inputs one list has in a run: in most there is no long
// one, in a few it takes several transactions to link.
func (w *world) drawWidth() int {
	switch n := w.random.IntN(100); {
	case n == 0:
		return 510 + w.random.IntN(90)
	case n < 20:
		return layout.MaxInputsInSpec + 1 + w.random.IntN(30)
	}
	return 0
}

// drawInputs draws the inputs of a future among the last ones that were asked for:
// none, a chain's, or several, so that diamonds come by themselves. Some of them do
// not exist, because no result of their submit is known.
func (c *clientProcess) drawInputs() []layout.ID {
	w := c.world
	var inputs []layout.ID
	switch n := w.random.IntN(10); {
	case n < 5:
	case n == 5:
		inputs = c.drawInput(inputs, 1)
	default:
		for range 1 + w.random.IntN(4) {
			inputs = c.drawInput(inputs, 14)
		}
	}
	return inputs
}

// drawInput appends one of the last requests, with luck one that won't fail.
func (c *clientProcess) drawInput(inputs []layout.ID, among int) []layout.ID {
	w := c.world
	for range 4 {
		n := min(among, len(c.requests))
		if n == 0 {
			break
		}
		r := c.requests[len(c.requests)-1-w.random.IntN(n)]
		fails := r.submission.Spec.Function != "go:"+fnUpper && !r.isPut() || r.ended != nil && r.ended.State == layout.Failed
		if r.abandoned || r.missed || r.discarded || fails && w.random.IntN(4) > 0 {
			continue
		}
		return append(inputs, r.submission.ID)
	}
	return inputs
}

// drawWide draws futures that are all inputs of a few more, or of which all have
// the same one, or both.
func (c *clientProcess) drawWide(n int) ([]*request, error) {
	w := c.world
	var batch []*request
	var leaves []layout.ID
	plain := func(function string, inputs []layout.ID) error {
		r, err := c.add(fdbmodel.Submission{
			Args: fmt.Appendf(nil, "future-%d", len(c.requests)), Inputs: inputs,
			Spec: layout.Spec{
				Function: "go:" + function, Session: c.session, MaxRetries: 3, Priority: uint8(w.random.IntN(3)),
			},
		})
		batch = append(batch, r)
		return err
	}
	shared := c.drawInput(nil, 3)
	if w.random.IntN(2) == 0 {
		shared = nil
	}
	for range n {
		function := fnUpper
		if w.random.IntN(4*n) == 0 {
			function = fnBroken
		}
		if err := plain(function, shared); err != nil {
			return nil, err
		}
		leaves = append(leaves, batch[len(batch)-1].submission.ID)
	}
	for range 1 + w.random.IntN(3) {
		if err := plain(fnUpper, leaves); err != nil {
			return nil, err
		}
		w.report.Wide++
	}
	w.leaves = len(batch)
	return batch, nil
}

// mayMiss reports whether an input of a request may have been removed, or never
// have existed.
func (c *clientProcess) mayMiss(r *request) bool {
	for _, id := range r.submission.Inputs {
		if input := c.byID[id]; input.abandoned || input.discarded || c.world.expires && !input.open() {
			return true
		}
	}
	return false
}

// checkStart checks that a future may start: it is due, and its inputs are realized.
func (w *world) checkStart(ctx context.Context, info *workers.Info) {
	r := w.client.byID[info.ID]
	early := r.submission.NotBefore.Sub(w.clock.Now())
	if early >= time.Millisecond && r.retried == 0 {
		w.broken = append(w.broken, fmt.Errorf("future %s starts %v too early", info.ID, early))
	}
	if len(r.submission.Inputs) == 0 {
		return
	}
	w.report.Joined++
	defer w.calm()()
	rows, err := w.reader.GetMany(context.WithoutCancel(ctx), append([]layout.ID{info.ID}, r.submission.Inputs...))
	if err != nil {
		w.broken = append(w.broken, fmt.Errorf("inputs of future %s: %w", info.ID, err))
		return
	}
	found := map[layout.ID]layout.State{}
	for i := range rows {
		found[rows[i].ID] = rows[i].State()
	}
	over := found[info.ID] == 0 || found[info.ID].Terminal() // a worker that lost its claim may run it
	for _, id := range r.submission.Inputs {
		// An object may be lost by now.
		if s := found[id]; s != layout.Realized && !(s == 0 && over) && !w.client.byID[id].submission.Spec.AsObject {
			w.broken = append(w.broken, fmt.Errorf("future %s starts, and its input %s is %v", info.ID, id, s))
		}
	}
}

// checkInputs compares how a future ended, with a failure or nil, with how its inputs
// did.
func (w *world) checkInputs(r *request, failure *layout.Exception, ran bool) error {
	id, c := r.submission.ID, w.client
	if failure == nil || failure.Kind != layout.KindUpstream {
		for _, input := range r.submission.Inputs {
			in := c.byID[input]
			if in.missed || in.submission.Spec.AsObject {
				continue
			}
			if ran && (in.ended == nil || in.ended.State != layout.Realized) {
				return fmt.Errorf("future %s ran, and its input %s did not end as realized", id, input)
			}
		}
		return nil
	}
	w.report.Upstream++
	// A short list is checked by the submit, and kept until the future is over.
	late := r.retried > 0 || len(r.submission.Inputs) > layout.MaxInputsInSpec
	for _, input := range r.submission.Inputs {
		in := c.byID[input]
		// A result may have been lost for good, and the future removed, before the client
		// looked. One that is needed is not removed.
		lost := in.submission.Spec.AsObject && (w.expires || in.discarded) &&
			!strings.Contains(failure.Message, "does not exist")
		unseen := in.missed || lost
		if in.retried > 0 || unseen || in.ended != nil && in.ended.State == layout.Failed {
			return nil
		}
	}
	if late && c.mayMiss(r) {
		return nil
	}
	return fmt.Errorf("future %s failed with its inputs, of which none has failed: %s", id, failure.Message)
}
