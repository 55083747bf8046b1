package peerhead

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// call is one attempt on its way to a peer and back.
type call struct {
	workers.RemoteCall
	group group
	done  chan ending // receives one
	// over is closed when the attempt is over whose end is not this one as such. It is nil
	// where this one's is stored.
	over <-chan struct{}

	mu        sync.Mutex
	withdrawn bool
	order     *order
	index     int
}

// ending is how a call ended.
type ending struct {
	out workers.RemoteOutcome
	err error
}

// group is what calls of one order have in common.
type group struct {
	function string
	env      string // JSON, with its keys in order
	memory   int64
	priority int
	// For peers that keep limits of owners; none for futures without one.
	owner string
	limit int
	// Of nodes of b7s, which know these for a whole order.
	stdin   string
	seconds int
}

// fits returns an error for arguments that no message to a peer of a dialect can carry. One of them would keep
// the other items of its order from the peer too.
func fits(c *workers.RemoteCall, d protocol.Dialect) error {
	const wayOut = "; have a worker with access to the store run it"
	limits, most, size := protocol.DirectLimits(), protocol.MaxArgs, 0
	if d != protocol.DialectFutura {
		most = batch.MaxItem
	}
	if len(c.Args) > most {
		return fmt.Errorf("arguments, or standard input, of %d bytes: this peer is sent at most %d%s", len(c.Args), most,
			wayOut)
	}
	text := true // JSON has nothing else
	for _, a := range c.Argv {
		size += len(a)
		text = text && utf8.ValidString(a)
	}
	for name, value := range c.Env {
		text = text && utf8.ValidString(name) && utf8.ValidString(value)
	}
	if !text {
		return errors.New("argv, or a variable of the environment, that is no text in UTF-8: a peer is sent nothing else" +
			wayOut)
	}
	if size > limits.ArgumentBytes || len(c.Argv) > limits.Arguments {
		return fmt.Errorf("argv of %d strings, %d bytes together: a peer is sent at most %d strings, and %d bytes%s",
			len(c.Argv), size, limits.Arguments, limits.ArgumentBytes, wayOut)
	}
	return nil
}

// newCall returns a call, and an error for one that no message to a peer of a dialect can
// carry: another worker may run it.
func newCall(c workers.RemoteCall, d protocol.Dialect) (*call, error) {
	var env []byte
	if len(c.Env) > 0 {
		var err error
		if env, err = json.Marshal(c.Env); err != nil {
			return nil, err
		}
	}
	if err := fits(&c, d); err != nil {
		return nil, err
	}
	c.Timeout = min(c.Timeout, protocol.MaxTime)
	cl := &call{RemoteCall: c, done: make(chan ending, 1), group: group{
		function: c.Function, env: string(env), memory: c.Memory, priority: c.Priority,
	}}
	if d == protocol.DialectFutura {
		return cl, nil
	}
	if !utf8.Valid(c.Args) {
		return nil, errors.New("a node of b7s takes text as standard input, and this is not: have another worker run it")
	}
	cl.group.stdin, cl.group.seconds = string(c.Args), int(c.Timeout.Seconds()+0.999)
	return cl, nil
}

// end ends the call.
func (c *call) end(out workers.RemoteOutcome, err error) { c.done <- ending{out, err} }

// withdraw has the peer stop what is not waited for any more.
func (c *call) withdraw() {
	c.mu.Lock()
	c.withdrawn = true
	o, index := c.order, c.index
	c.mu.Unlock()
	if o != nil {
		o.withdraw(index)
	}
}

func (c *call) isWithdrawn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withdrawn
}

// join puts the call into an order, unless it was withdrawn.
func (c *call) join(o *order, index int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.withdrawn {
		return false
	}
	c.order, c.index = o, index
	return true
}

// module returns the content id and the method of a call's module, empty for another
// function.
func (c *call) module() (cid, method string) {
	name, isModule := strings.CutPrefix(c.Function, "wasm:")
	if !isModule {
		return "", ""
	}
	cid, method, _ = strings.Cut(name, "/")
	return cid, method
}

// b7sMethod is the file that a module has for nodes of b7s.
const b7sMethod = "main.wasm"

// itemID is the id by which nodes of b7s return the result.
func (c *call) itemID() string {
	cid, _ := c.module()
	return batch.ItemID(&batch.Template{FunctionID: cid, Method: b7sMethod}, c.Argv)
}

// template is what the calls of a group have in common, on the wire.
func (c *call) template(d protocol.Dialect) protocol.Template {
	cid, method := c.module()
	t := protocol.Template{FunctionID: c.Function}
	if cid != "" {
		t.FunctionID, t.Method = cid, method
	}
	for _, name := range sortedKeys(c.Env) {
		t.Config.Environment = append(t.Config.Environment, batch.EnvVar{Name: name, Value: c.Env[name]})
	}
	if c.Memory > 0 {
		t.Config.Runtime = &protocol.Runtime{Memory: uint64(c.Memory)}
	}
	if d == protocol.DialectFutura {
		return t
	}
	t.Method = b7sMethod
	t.Config.Stdin, t.Config.Timeout = c.group.stdin, c.group.seconds
	if t.Config.Runtime != nil {
		t.Config.Runtime.Memory = (t.Config.Runtime.Memory-1)/protocol.MemoryPage + 1
	}
	if method != "" {
		if t.Config.Runtime == nil {
			t.Config.Runtime = &protocol.Runtime{}
		}
		t.Config.Runtime.Entry = method
	}
	return t
}
