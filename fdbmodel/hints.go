package fdbmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Hinter passes hints on to the workers of other processes, past the store. A hint
// may be lost, late, repeated or invented: it says when to look, never what there is.
type Hinter interface {
	// Hint has workers of other processes call Hinted with a message for up to n
	// futures, and returns for how many a worker now looks. It takes no more than some
	// milliseconds.
	Hint(ctx context.Context, message []byte, n int) (heeded int)
	// Met names workers that the store was used to wake. It does not wait.
	Met(workers []layout.WorkerID)
}

// OfferHinter has h used by the cluster's submits, unless another one is. Without
// any, and for what nobody heeds, workers of other processes are woken through the
// store.
func (c *Cluster) OfferHinter(h Hinter) {
	c.hinterMu.Lock()
	defer c.hinterMu.Unlock()
	if c.hinter == nil {
		c.hinter = h
	}
}

// WithdrawHinter ends the use of h.
func (c *Cluster) WithdrawHinter(h Hinter) {
	c.hinterMu.Lock()
	defer c.hinterMu.Unlock()
	if c.hinter == h {
		c.hinter = nil
	}
}

func (c *Cluster) offeredHinter() Hinter {
	c.hinterMu.Lock()
	defer c.hinterMu.Unlock()
	return c.hinter
}

// maxHintedDemands is for how many kinds of futures of one transaction others are
// hinted at. Those of the others are woken through the store.
const maxHintedDemands = 4

// hintOthers has workers of other processes look for futures that entered the pool,
// and takes those that one looks for from placed. Of a future that best runs
// somewhere, or better not, the store knows more.
func (c *Cluster) hintOthers(ctx context.Context, placed demands) {
	hinter := c.offeredHinter()
	if hinter == nil {
		return
	}
	kinds := 0
	for d, n := range placed {
		if n == 0 || d.near != "" || d.failedOn != "" || d.refused != "" {
			continue
		}
		if kinds++; kinds > maxHintedDemands {
			return
		}
		placed[d] = n - hinter.Hint(ctx, d.message(), min(n, wakeLimit))
	}
}

// message encodes a demand for Hinted.
func (d demand) message() []byte {
	b := tuple.AppendString(nil, d.queue)
	b = tuple.AppendString(b, d.function)
	for _, n := range []int64{d.cpu, d.ram, d.gpu, int64(d.shard)} {
		b = tuple.AppendInt(b, n)
	}
	b = tuple.AppendString(b, d.labels)
	return tuple.AppendBool(b, d.object)
}

// demandOf decodes a message. Parts that a newer version adds are ignored.
func demandOf(message []byte, shards int) (demand, error) {
	r := tuple.NewReader(message)
	d := demand{queue: r.Text(), function: r.Text(), cpu: r.Int(), ram: r.Int(), gpu: r.Int()}
	shard := r.Int()
	d.labels, d.object = r.Text(), r.Bool()
	if err := r.Err(); err != nil {
		return d, fmt.Errorf("a hint: %w", err)
	}
	if shard < 0 || shard >= int64(shards) {
		return d, fmt.Errorf("a hint at shard %d of %d", shard, shards)
	}
	d.shard = int(shard)
	return d, nil
}

// Hinted has idle workers of this process look for up to n futures, as a message of
// another process says, and returns how many do. Nothing is believed: a worker
// looks as if by itself. One that looked in vain heeds no hint of others for a while,
// up to a second. It does not wait.
func (c *Cluster) Hinted(message []byte, n int) (heeded int) {
	d, err := demandOf(message, c.config.Shards)
	if err != nil || n < 1 {
		return 0
	}
	return c.hub.wakeFar(d, min(n, wakeLimit), c.clock.Now())
}

// Registered returns the info of a worker, and ErrNotFound for one that is not
// registered, or not any more. It only reads.
func (c *Cluster) Registered(ctx context.Context, worker layout.WorkerID) (layout.WorkerInfo, error) {
	info := layout.WorkerInfo{ID: worker}
	key := c.keys.Worker(worker, layout.WorkerAlive)
	err := c.View(ctx, func(tx kv.Attempt) error {
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("%w: worker %s", ErrNotFound, worker)
		}
		if err != nil {
			return err
		}
		return layout.Decode(key, value, &info)
	})
	return info, err
}

// HintPace bounds how often hints make somebody look. The zero value allows a look at
// once. It belongs to one goroutine at a time.
type HintPace struct {
	wait time.Duration
	next time.Time
}

// The wait after a look in vain, doubled by each that follows, and halved by each that
// finds something.
const (
	hintWaitMin = 2 * time.Millisecond
	hintWaitMax = time.Second
)

// Next returns from when on a hint may lead to a look.
func (p *HintPace) Next() time.Time { return p.next }

// Looked says that a hint led to a look, and whether that found something; least is
// the wait until the next one if it did.
func (p *HintPace) Looked(now time.Time, found bool, least time.Duration) {
	if !found {
		p.wait = min(max(2*p.wait, hintWaitMin), hintWaitMax)
		least = 0
	} else if p.wait /= 2; p.wait < hintWaitMin {
		p.wait = 0
	}
	p.next = now.Add(max(p.wait, least))
}
