package stack

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// secretPath says where paths have secrets: after a part of a path, and what they begin with.
type secretPath struct{ before, mark string }

// shownPath is the path of a request as logs and problems show it: what begins with the mark of a
// secret is left out, and so is one that was sent without its mark.
func (s *Stack) shownPath(path string) string {
	for _, secret := range s.secrets {
		if at := strings.Index(path, secret.mark); at >= 0 {
			return path[:at+len(secret.mark)] + "…"
		}
		if len(path) > len(secret.before) && strings.HasPrefix(path, secret.before) {
			return secret.before + "…"
		}
	}
	return path
}

// withoutSecret is a request as traces show it: with the path of logs if that may have a secret.
func (q *request) withoutSecret(r *http.Request) *http.Request {
	if !strings.HasSuffix(q.path, "…") {
		return r
	}
	shown := *r
	shown.RequestURI, shown.URL = q.path, &url.URL{Path: q.path}
	return &shown
}

// checkSecrets returns a problem for a request to a route with a secret in its path, if its address
// has sent too many wrong ones.
func (s *Stack) checkSecrets(r *http.Request) error {
	if address := addressOf(r); s.failed.isSpent(address, time.Now()) {
		return s.spent(s.failed, failedRequests, address)
	}
	return nil
}

// WrongSecret returns the problem of a request whose path has a wrong secret: err, or the one that
// the budget of its address for such requests is spent. Requests with a valid token have no such
// budget.
func WrongSecret(r *http.Request, err error) error {
	q := requestOf(r.Context())
	if q.authenticated {
		return err
	}
	return q.stack.checkBudget(r, err)
}
