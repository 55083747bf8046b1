package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/futura-run/futura/workers"
)

// api stands for a service that allows each customer one call at a time, in order.
type api struct {
	mu   sync.Mutex
	busy map[string]bool
	last map[string]int
}

func newAPI() *api { return &api{busy: map[string]bool{}, last: map[string]int{}} }

// call answers a call, and refuses one beside another or out of order.
func (a *api) call(_ context.Context, c Call) (string, error) {
	a.mu.Lock()
	wrong := a.busy[c.Customer] || a.last[c.Customer] >= c.Number
	a.busy[c.Customer] = true
	a.mu.Unlock()
	if wrong {
		return "", workers.Permanent(fmt.Errorf("call %d of %s is beside another, or out of order", c.Number, c.Customer))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy[c.Customer], a.last[c.Customer] = false, c.Number
	return fmt.Sprintf("%s: call %d", c.Customer, c.Number), nil
}
