package bank

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// round strikes at any point of what the clients do, and waits until all of them go on.
func (c *crew) round() {
	c.progress(1 + c.random.IntN(20))
	faults := []struct {
		name   string
		strike func()
	}{
		{"kill a worker", func() { c.killMember(c.anyWorker()) }},
		{"kill the store", c.killStore},
		{"stop a worker", func() { c.stop(c.members[c.anyWorker()].command.Process.Signal) }},
		{"stop the store", func() {
			if c.server != nil {
				c.stop(c.server.signal)
				return
			}
			c.stop(c.members[c.owner()].command.Process.Signal)
		}},
		{"move a clock", func() { c.setClock(c.members[c.anyWorker()], c.offset()) }},
	}
	fault := faults[c.random.IntN(len(faults))]
	fault.strike()
	c.struck[fault.name]++
	c.progress(1)
}

// anyWorker returns the number of a process that works and pays.
func (c *crew) anyWorker() int {
	for {
		if at := c.random.IntN(len(c.members)); c.members[at].clients > 0 {
			return at
		}
	}
}

// owner returns the number of the process that has the embedded store open.
func (c *crew) owner() (at int) {
	c.await("a process that has the store", func() bool {
		for n, m := range c.members {
			if _, owner, _ := m.is(); owner {
				at = n
				return true
			}
		}
		return false
	})
	return at
}

func (c *crew) killMember(at int) {
	clients := c.members[at].clients
	c.members[at].kill()
	c.start(at, clients)
}

func (c *crew) killStore() {
	if c.server == nil {
		c.killMember(c.owner())
		return
	}
	c.server.kill()
	require.NoError(c.t, c.server.restart())
}

// stop stops a process for longer than it takes to be declared dead.
func (c *crew) stop(signal func(os.Signal) error) {
	require.NoError(c.t, signal(syscall.SIGSTOP))
	<-time.After(2*deadAfter + time.Duration(c.random.Int64N(int64(deadAfter))))
	require.NoError(c.t, signal(syscall.SIGCONT))
}

// summary says what has happened.
func (c *crew) summary(h *history) string {
	ended, refused := 0, 0
	for _, p := range h.payments {
		if p.paidAt > 0 {
			ended++
		}
		if p.paid.Refused {
			refused++
		}
	}
	return fmt.Sprintf("%v, clock set for a delay %d times; %d payments, %d of them acknowledged before the end and "+
		"%d refused, %d reads of all accounts, %d workers declared dead that came back", c.struck, c.rescues,
		len(h.payments), ended, refused, h.surveys, h.again)
}
