package notify

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
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

// OfferHinter has h used by the cluster's submits, while none that was offered before is.
// Without any, and for what no worker heeds, workers of other processes are woken through the
// store.
func (n *Notifier) OfferHinter(h Hinter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hinters = append(n.hinters, h)
}

// WithdrawHinter ends the use of h.
func (n *Notifier) WithdrawHinter(h Hinter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hinters = slices.DeleteFunc(n.hinters, func(one Hinter) bool { return one == h })
}

// hinter returns the one that is used, or nil.
func (n *Notifier) hinter() Hinter {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.hinters) == 0 {
		return nil
	}
	return n.hinters[0]
}

// maxHintedDemands is for how many kinds of futures of one transaction others are
// hinted at. Those of the others are woken through the store.
const maxHintedDemands = 4

// hintOthers has workers of other processes look for futures that entered the pool,
// and takes those that one looks for from placed. Of a future that best runs
// somewhere, or better not, the store knows more.
func (n *Notifier) hintOthers(ctx context.Context, placed Demands) {
	hinter := n.hinter()
	if hinter == nil {
		return
	}
	kinds := 0
	for d, left := range placed {
		if left == 0 || d.Near != "" || d.FailedOn != "" || d.Refused != "" {
			continue
		}
		if kinds++; kinds > maxHintedDemands {
			return
		}
		placed[d] = left - hinter.Hint(ctx, d.Message(), min(left, wakeLimit))
	}
}

// Hinted has idle workers of this process look for a number of futures, as a message of
// another process says, and returns how many do. Nothing is believed: a worker
// looks as if by itself. One that looked in vain heeds no hint of others for a while,
// up to a second. It does not wait.
func (n *Notifier) Hinted(message []byte, futures int) (heeded int) {
	d, err := demandOf(message, n.keys.Shards)
	if err != nil || futures < 1 {
		return 0
	}
	now := n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hints++
	return n.wakeFrom(d, min(futures, wakeLimit), true, func(r *Request) bool { return !now.Before(r.paced) })
}

// Pace bounds how often hints lead to a look. The zero value allows a look at
// once. It belongs to one goroutine at a time.
type Pace struct {
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
func (p *Pace) Next() time.Time { return p.next }

// Looked says that a hint led to a look, and whether that found something; least is
// the wait until the next one if it did.
func (p *Pace) Looked(now time.Time, found bool, least time.Duration) {
	if !found {
		p.wait = min(max(2*p.wait, hintWaitMin), hintWaitMax)
		least = 0
	} else if p.wait /= 2; p.wait < hintWaitMin {
		p.wait = 0
	}
	p.next = now.Add(max(p.wait, least))
}
