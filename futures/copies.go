package futures

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects/held"
)

// ErrUnknownWorker is returned for a worker that is not registered, or holds no
// objects.
var ErrUnknownWorker = errors.New("no such worker, or it holds no objects")

// CopyOptions say how a result goes to another worker. The zero value is right.
type CopyOptions struct {
	// To is the worker. Defaults to the one with most room that has no copy yet.
	To WorkerID
	// Progress is told several times a second how many of the bytes of the result have
	// arrived, as the worker says; a worker that fails is followed by another one, which
	// begins with none. It is called by the goroutine that called Clone or Transfer.
	// Defaults to none.
	Progress func(arrived, size int64)
}

// Clone has another worker take a copy of a result that is an object, from the workers
// that have it: the result is lost only with the last of them. Clone returns once the
// copy counts, and which worker has it; also if it had one before. At most 64 workers
// have a copy.
//
// It returns ErrNotFound for an unknown future and if no worker has the result any
// more, ErrTransition for a result that is no object and, without To, if all workers
// with an object store have a copy, ErrNoHolder if no worker takes it, and
// ErrUnknownWorker. An unknown commit is retried and harmless. If ctx ends, the
// worker drops what it has got, unless the copy counts already.
func (c *Client) Clone(ctx context.Context, id ID, o CopyOptions) (WorkerID, error) {
	return c.take(ctx, id, o, false)
}

// Transfer is Clone, after which no other worker has a copy: in the transaction that
// counts the new one, those of others cease to, and their workers drop what they hold
// within 10 s.
func (c *Client) Transfer(ctx context.Context, id ID, o CopyOptions) (WorkerID, error) {
	return c.take(ctx, id, o, true)
}

func (c *Client) take(ctx context.Context, id ID, o CopyOptions, alone bool) (WorkerID, error) {
	if err := c.usable(); err != nil {
		return "", err
	}
	row, err := c.cluster.Get(ctx, id)
	if err != nil {
		return "", err
	}
	switch {
	case row.State() != Realized:
		return "", fmt.Errorf("future %s is %s: it has no result to clone or transfer, that is %w", id, row.State(),
			ErrTransition)
	case row.Object() == "":
		return "", fmt.Errorf("the result of future %s is stored with the cluster: clone and transfer of it are %w", id,
			ErrTransition)
	}
	candidates, err := c.takers(ctx, id, o.To)
	if err != nil {
		return "", err
	}
	holders, err := c.objects.Holders(ctx, candidates)
	if err != nil {
		return "", err
	}
	how := held.TakeOptions{Alone: alone}
	if o.Progress != nil {
		size := row.Result.Size
		how.Arrived = func(n int64) { o.Progress(min(n, size), size) }
	}
	var failed error
	for i := range holders {
		err := c.objects.Take(ctx, &holders[i], id, how)
		if err == nil {
			return holders[i].Worker, nil
		}
		if ctx.Err() != nil || errors.Is(err, ErrNotFound) {
			return "", err
		}
		failed = errors.Join(failed, err)
	}
	if !errors.Is(failed, ErrNoHolder) {
		failed = fmt.Errorf("%w: %w", ErrNoHolder, failed)
	}
	return "", failed
}

// takers returns the workers that may take a copy: one, or all that have none.
func (c *Client) takers(ctx context.Context, id ID, to WorkerID) (takers []layout.WorkerInfo, err error) {
	having := 0
	members, err := c.cluster.Workers(ctx)
	if err != nil {
		return nil, err
	}
	copies, err := results.Of(c.cluster).Copies(ctx, id)
	if err != nil {
		return nil, err
	}
	for i := range members {
		m := &members[i]
		if !m.Alive || m.Unreadable != "" || m.Leaving || m.Objects == "" || to != "" && m.ID != to {
			continue
		}
		has := slices.ContainsFunc(copies, func(held results.Copy) bool { return held.Worker == m.ID })
		if to != "" || !has {
			takers = append(takers, m.WorkerInfo)
		} else {
			having++
		}
	}
	switch {
	case len(takers) > 0:
	case to != "":
		return nil, fmt.Errorf("worker %s: %w", to, ErrUnknownWorker)
	case having > 0:
		return nil, fmt.Errorf("all workers with an object store (%d) have a copy of the result of future %s already: one "+
			"without is needed, or name which is to have it; as it is, that is %w", having, id, ErrTransition)
	}
	return takers, nil
}

// Pin keeps a future from being removed, by its retention as by Discard, until Unpin is
// called with the same holder, a name of 1 to 64 bytes: pins are a set of names, and
// pinning again changes nothing. A pin does not keep an object from being lost. Pin
// returns ErrBadName, ErrNotFound, and ErrTransition for an item of a batch or a future
// with 64 pins. An unknown commit is retried and harmless.
func (c *Client) Pin(ctx context.Context, id ID, holder string) error {
	return results.Of(c.cluster).Pin(ctx, id, holder, "")
}

// PinWhileOpen is Pin until this client is closed, or its process has been dead for
// some minutes.
func (c *Client) PinWhileOpen(ctx context.Context, id ID, holder string) error {
	if err := c.listen(); err != nil { // it keeps the session alive
		return err
	}
	return results.Of(c.cluster).Pin(ctx, id, holder, c.session)
}

// Unpin ends the pin of a holder, and changes nothing if there is none. A future whose
// retention has passed is removed within another one. It returns ErrBadName and
// ErrNotFound. An unknown commit is retried and harmless.
func (c *Client) Unpin(ctx context.Context, id ID, holder string) error {
	return results.Of(c.cluster).Unpin(ctx, id, holder)
}

// Pins returns who keeps a future from being removed. It returns ErrNotFound.
func (c *Client) Pins(ctx context.Context, id ID) ([]string, error) {
	return results.Of(c.cluster).Pins(ctx, id)
}
