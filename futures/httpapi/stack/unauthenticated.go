package stack

import (
	"hash/maphash"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// addressSlots bounds the budgets of addresses: beyond so many, some addresses have one together.
const addressSlots = 4096

// addressBudgets bound the requests of each address that show no valid token.
type addressBudgets struct {
	perMinute int
	seed      maphash.Seed

	mu    sync.Mutex
	slots map[uint64]*rate.Limiter
}

func newAddressBudgets(perMinute int) *addressBudgets {
	return &addressBudgets{perMinute: perMinute, seed: maphash.MakeSeed(), slots: map[uint64]*rate.Limiter{}}
}

// spend takes one request from the budget of an address, if it has one left.
func (b *addressBudgets) spend(address string, now time.Time) bool {
	slot := maphash.String(b.seed, address) % addressSlots
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.slots[slot]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(b.perMinute)/60, b.perMinute)
		b.slots[slot] = l
	}
	return l.AllowN(now, 1)
}

// isSpent reports whether the budget of an address has no request left.
func (b *addressBudgets) isSpent(address string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.slots[maphash.String(b.seed, address)%addressSlots]
	return l != nil && l.TokensAt(now) < 1
}

// retryAfter is in how many seconds an address that has spent its budget has a request again.
func (b *addressBudgets) retryAfter() int { return max(1, (60+b.perMinute-1)/b.perMinute) }

// checkBudget spends the budget of the address of a request without a valid token: of open requests, or of those that
// are refused. The returned problem is the one of the request, or the one that its budget is spent.
func (s *Stack) checkBudget(r *http.Request, refused error) error {
	of, what := s.open, "of requests that need no token"
	if refused != nil {
		of, what = s.failed, failedRequests
	}
	address := addressOf(r)
	if of.spend(address, time.Now()) {
		return refused
	}
	return s.spent(of, what, address)
}

// failedRequests are what a budget is of.
const failedRequests = "of requests whose token is missing or wrong"

// spent is the problem that an address has spent a budget.
func (s *Stack) spent(of *addressBudgets, what, address string) error {
	p := NewProblem(http.StatusTooManyRequests, "rate_limited", nil,
		"the address %s has spent its budget %s, %d in a minute: try again in %d seconds, or send a valid token", address,
		what, of.perMinute, of.retryAfter())
	return p.laterBy(of.retryAfter())
}

// isLast reports whether the connection of a request without a valid token ends after it.
func (q *request) isLast(err error) bool {
	if p, ok := err.(*Problem); ok && p.Status == http.StatusTooManyRequests {
		return true
	}
	c := socketOf(q.connection)
	if c == nil || c.authenticated.Load() {
		return false
	}
	c.answered++
	return c.answered >= unauthenticatedRequests
}

// addressOf is what requests without a token are counted by: an IPv6 address is its first 64 bits.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if address = address.Unmap().WithZone(""); address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr().String()
		}
	}
	return address.String()
}
