package futures

import (
	"context"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/workers/objects/hints"
)

// hintedGap is how long after a look that found mail a hint leads to no other one. What
// comes in between is read together.
const hintedGap = 2 * time.Millisecond

// wakes are what the client's submits do in the background to have workers of other processes look for their futures.
type wakes struct {
	ctx      context.Context
	end      context.CancelFunc
	running  sync.WaitGroup
	withdraw func()
}

// wakeGrace is how long Close waits for the last of them.
const wakeGrace = time.Second

func (w *wakes) start(n *fdbmodel.Notifier) {
	w.ctx, w.end = context.WithCancel(context.Background())
	w.withdraw = n.OfferBackground(func(fn func(context.Context)) {
		w.running.Go(func() { fn(w.ctx) })
	})
}

// close waits for what runs. It may be called again.
func (w *wakes) close() {
	if w.withdraw == nil {
		return
	}
	w.withdraw()
	timer := time.AfterFunc(wakeGrace, w.end)
	w.running.Wait()
	timer.Stop()
	w.end()
}

// startHints has the client use hints. Those of mail are worth it only where a watch
// has to ask a server: in other stores it fires as soon as the mail is there.
func (c *Client) startHints() {
	if c.manual() || c.options.NoHints {
		return
	}
	o := hints.Options{Logger: c.options.Logger}
	if kv.TraitsOf(c.cluster.Database()).Opening == "" {
		o.Session, o.News = c.session, c.listener.hint
		c.unhear = c.listener.mailbox.Hear(c.listener.hint)
	}
	c.hints = hints.New(c.cluster, o)
	c.cluster.Notifier().OfferHinter(c.hints)
}

// stopHints ends the use of hints. It may be called again.
func (c *Client) stopHints() {
	if c.hints == nil {
		return
	}
	c.cluster.Notifier().WithdrawHinter(c.hints)
	c.hints.Close()
	if c.unhear != nil {
		c.unhear()
	}
}

// hint says that there may be mail. It does not wait.
func (l *listener) hint() {
	l.hinted.Store(true)
	l.wake()
}

// takeHint reports whether a hint of mail leads to a look now.
func (l *listener) takeHint(now time.Time) bool {
	return !now.Before(l.pace.Next()) && l.hinted.Swap(false)
}
