package peerhead

import (
	"maps"
	"unicode/utf8"

	"github.com/futura-run/futura/protocol"
)

// trace is the context of the call's trace, as messages carry it. One that is too large for
// them, or no text, is left out.
func (c *call) trace() protocol.Carrier {
	size, text := 0, true
	for name, value := range c.Trace {
		size += len(name) + len(value)
		text = text && utf8.ValidString(name) && utf8.ValidString(value)
	}
	if size == 0 || size > protocol.MaxCarrier || !text {
		return nil
	}
	return c.Trace
}

// sharedTrace is the context of a trace that all calls of an order are part of, nil without
// one: an order of b7s has a single one.
func (o *order) sharedTrace() protocol.Carrier {
	first := o.items[0].Trace
	for i := range o.items {
		if !maps.Equal(first, o.items[i].Trace) {
			return nil
		}
	}
	return first
}
