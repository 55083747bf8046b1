package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
)

// Bounds of batches.
const (
	heads        = 2
	maxBatches   = 3
	maxItems     = 25
	itemAttempts = 6
)

// fnItem is the function of all items: its second argument says how they end.
const fnItem = "item"

// batchRequest is a batch as the workload wants it.
type batchRequest struct {
	request      batch.Request
	id           string // once it was acknowledged
	cancelled    bool
	ended        *batch.Batch
	realizations map[int]layout.Token // by the index of an item, what ended it
	moved        int                  // items that went to another worker before they began
}

// headProcess is a head, and whoever submits batches to it.
type headProcess struct {
	agenda
	world   *world
	process *process
	seam    seam.Head
	head    *head.Head
	look    time.Time // when it looks which batches are over
}

// startHead starts a head. It knows of batches what the store says.
func (w *world) startHead(ctx context.Context) error {
	p := &headProcess{world: w}
	var err error
	if p.process, err = w.startProcess(ctx, &p.agenda, p); err != nil {
		return err
	}
	cluster := p.process.cluster
	random := [32]byte{byte(w.random.Uint32()), byte(w.random.Uint32())}
	p.seam = seam.Head{Now: w.clock.Now, Random: rand.NewChaCha8(random)}
	p.head = head.New(head.Options{
		Store: futurestore.New(cluster, futurestore.Options{
			Backoff: layout.Backoff{Base: 200 * time.Millisecond, Max: 2 * time.Second},
		}),
		Dispatcher: head.NewCluster(cluster), BootDelay: time.Second, RequeueInterval: 10 * time.Second,
		WorkerWait: 5 * time.Second, Seam: &p.seam,
	})
	w.heads = append(w.heads, p)
	return nil
}

// restartHead ends the head at an index and starts another.
func (w *world) restartHead(ctx context.Context, at int) error {
	w.heads[at].process.die()
	w.heads = append(w.heads[:at], w.heads[at+1:]...)
	w.report.HeadKills++
	return w.startHead(ctx)
}

func (p *headProcess) step(ctx context.Context, now time.Time) (time.Time, error) {
	w := p.world
	if p.process.dead {
		return now.Add(time.Second), nil
	}
	if !w.healing && len(w.batches) < w.wanted && w.random.IntN(8) == 0 {
		w.batches = append(w.batches, w.drawBatch())
	}
	for _, b := range w.batches {
		if b.id == "" {
			if err := p.submit(ctx, b); err != nil {
				return now, err
			}
		}
	}
	if n := len(w.batches); n > 0 && !w.healing && w.random.IntN(100) == 0 {
		if err := p.cancel(ctx, w.batches[w.random.IntN(n)]); err != nil {
			return now, err
		}
	}
	next, err := p.seam.Step(ctx, now)
	if lost := errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrUnfit); err != nil && !lost {
		return now, err
	}
	if !now.Before(p.look) {
		p.look = now.Add(time.Second)
		if err := p.see(ctx); err != nil {
			return now, err
		}
	}
	return clock.Earlier(next, now.Add(time.Duration(200+w.random.IntN(800))*time.Millisecond)), nil
}

// drawBatch draws a batch: most of its items succeed, now or later.
func (w *world) drawBatch() *batchRequest {
	kinds := []string{fnUpper, fnUpper, fnUpper, fnUpper, fnFlaky, fnFlaky, fnBroken}
	name := fmt.Sprintf("batch-%d", len(w.batches))
	r := batch.Request{
		Key:         name,
		MaxAttempts: uint64(1 + w.random.IntN(itemAttempts)),
		Template: batch.Template{FunctionID: "go:" + fnItem, Method: fnItem, Config: batch.Config{
			Nodes: w.random.IntN(4) - 1, Concurrency: 1 + w.random.IntN(3),
		}},
	}
	for n := range 1 + w.random.IntN(maxItems) {
		r.Arguments = append(r.Arguments, []string{fmt.Sprintf("%s/%d", name, n), kinds[w.random.IntN(len(kinds))]})
	}
	return &batchRequest{request: r, realizations: map[int]layout.Token{}}
}

// submit submits a batch, again if no result of that is known.
func (p *headProcess) submit(ctx context.Context, b *batchRequest) error {
	made, _, err := p.head.Submit(ctx, b.request)
	if errors.Is(err, batch.ErrBusy) {
		return nil // it is being made; the next step asks again
	}
	if err == nil && b.id == "" {
		b.id = made.ID
		p.world.report.Batches++
	}
	return err
}

func (p *headProcess) cancel(ctx context.Context, b *batchRequest) error {
	if b.id == "" || b.ended != nil {
		return nil
	}
	b.cancelled = true
	err := p.head.Cancel(ctx, b.id, "simulated")
	if errors.Is(err, batch.ErrState) {
		return nil // it is over
	}
	return err
}

// see looks which batches are over. None begins again.
func (p *headProcess) see(ctx context.Context) error {
	for _, b := range p.world.batches {
		if b.id == "" {
			continue
		}
		now, err := p.head.Store().Get(ctx, b.id)
		switch {
		case err != nil:
			return err
		case b.ended != nil && now.Status != b.ended.Status:
			return fmt.Errorf("batch %s was %v and is %v", b.id, b.ended.Status, now.Status)
		case b.ended == nil && now.Status.Over():
			b.ended = &now
		}
	}
	return nil
}

// item is the function of items.
func (w *world) item(_ context.Context, args []byte) ([]byte, error) {
	var arguments []string
	if err := json.Unmarshal(args, &arguments); err != nil {
		return nil, err
	}
	if kind := arguments[1]; kind == fnBroken || kind == fnFlaky && w.log.runs(args)%2 == 1 {
		return nil, errors.New("the item failed")
	}
	return outcomeOf([]byte(arguments[0])), nil
}

// openBatches is how many batches are still to end.
func (w *world) openBatches() int {
	n := 0
	for _, b := range w.batches {
		// A cancelled batch is over before the items that run.
		if b.ended == nil || b.cancelled && len(b.realizations) < len(b.request.Arguments) {
			n++
		}
	}
	return n
}

// checkBatches checks that each item ends once.
func (w *world) checkBatches(ctx context.Context) error {
	for _, b := range w.batches {
		if b.id == "" {
			continue
		}
		rows, err := batches.Of(w.reader).Items(ctx, b.id, 0, len(b.request.Arguments))
		if err != nil {
			return err
		}
		if len(rows) != len(b.request.Arguments) {
			return fmt.Errorf("batch %s has %d of %d items", b.id, len(rows), len(b.request.Arguments))
		}
		for i := range rows {
			if err := w.checkItem(b, i, &rows[i]); err != nil {
				return fmt.Errorf("item %d of batch %s: %w", i, b.id, err)
			}
		}
		chunks, err := batches.Of(w.reader).Chunks(ctx, b.id)
		if err != nil {
			return err
		}
		moved := 0
		for i := range chunks {
			moved += chunks[i].Moved
		}
		w.report.Moved += moved - b.moved
		b.moved = moved
	}
	return nil
}

// checkItem compares an item with what it came to before, and with its function.
func (w *world) checkItem(b *batchRequest, i int, row *layout.Row) error {
	arguments := b.request.Arguments[i]
	args, _ := json.Marshal(arguments) // strings always encode
	runs := w.log.runs(args)
	if row.Attempts.Failed > runs {
		return fmt.Errorf("it counts %d failed attempts and ran %d times", row.Attempts.Failed, runs)
	}
	earlier, ended := b.realizations[i]
	token := layout.Token{}
	if row.State() == layout.Realized {
		token = row.Result.Token
	}
	switch {
	case ended && (!row.State().Terminal() || token != earlier):
		return fmt.Errorf("it ended by claim %v and is %v by %v", earlier, row.State(), token)
	case !row.State().Terminal():
		return nil
	case row.State() == layout.Failed:
		kind := row.Exception.Kind
		if kind == layout.KindCancelled && !b.cancelled {
			return errors.New("it was cancelled without a request")
		}
		if kind == layout.KindError && (arguments[1] == fnUpper || row.Attempts.Failed != row.Spec.MaxRetries+1) {
			return fmt.Errorf("it failed after %d of %d attempts", row.Attempts.Failed, row.Spec.MaxRetries+1)
		}
	case string(row.Result.Value) != string(outcomeOf([]byte(arguments[0]))) || runs == 0 || arguments[1] == fnBroken:
		return fmt.Errorf("it has the result %q after %d runs", row.Result.Value, runs)
	}
	b.realizations[i] = token
	if !ended {
		w.report.Items++
	}
	return nil
}

// checkBatchEnds checks batches that are over.
func (w *world) checkBatchEnds() error {
	for _, b := range w.batches {
		switch {
		case b.ended.Status == batch.PermanentlyFailed && !b.cancelled:
			return fmt.Errorf("batch %s is %v: %s", b.id, b.ended.Status, b.ended.Reason)
		case len(b.realizations) != len(b.request.Arguments):
			return fmt.Errorf("batch %s is %v, and %d of %d items have ended", b.id, b.ended.Status, len(b.realizations),
				len(b.request.Arguments))
		}
	}
	return nil
}
