package futures

import "context"

// MaxCommitters is the maximum number of concurrent transactions for Submits.
const MaxCommitters = maxCommitters

// CheckJSON checks a value that comes in two parts.
func CheckJSON(a, b []byte) error {
	var j jsonChecker
	for _, p := range [][]byte{a, b} {
		if err := j.write(p); err != nil {
			return err
		}
	}
	return j.end()
}

// SendsHints reports whether the client sends hints.
func (c *Client) SendsHints() bool { return c.hints != nil }

// HintMail says that there may be mail.
func (c *Client) HintMail() { c.listener.hint() }

// WaitsWithoutValue reports whether somebody waits for a future whose value nobody wants.
func (c *Client) WaitsWithoutValue(id ID) bool {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	e := c.registry.pending[id]
	return e != nil && !e.wantsValue()
}

// HasValue reports whether the client has the end of a future with its value.
func (f *Future) HasValue() bool { return f.client.registry.settledOf(f) != nil }

// FindRoom is findRoom that waits.
func (c *Client) FindRoom(ctx context.Context, ask func(context.Context, int) error) error {
	return c.findRoom(ctx, 1, true, ask)
}
