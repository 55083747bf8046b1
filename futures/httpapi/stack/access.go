package stack

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// Permission is the access that a request needs, and the role that a token has.
// Each includes those below it. The zero value is invalid: a route must declare
// its permission.
type Permission int

// The permissions.
const (
	// Public needs no token. It is for health and the API's description.
	Public Permission = iota + 1
	// Read allows reading everything.
	Read
	// Submit also allows creating, cancelling and retrying batches and futures.
	Submit
	// Admin also allows installing functions, and deleting.
	Admin
)

// String returns the permission's name.
func (p Permission) String() string {
	if p < Public || p > Admin {
		return "undeclared"
	}
	return [...]string{"public", "read", "submit", "admin"}[p-Public]
}

// ParseRole returns the permission with a name, if a token can have it.
func ParseRole(name string) (Permission, bool) {
	for _, p := range []Permission{Read, Submit, Admin} {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// admit returns a problem for a request that is refused because of its Host
// header, its origin, its token, an unknown path, or because its address has sent
// too many without a valid token. A valid token passes, whatever others sent.
func (s *Stack) admit(r *http.Request, q *request, found *route) error {
	s.authenticate(r, q)
	err := s.check(r, q, found)
	switch {
	case q.authenticated:
	case err == nil && found.secret:
		err = s.checkSecrets(r)
	default:
		err = s.checkBudget(r, err)
	}
	if err != nil {
		return err
	}
	q.enter(r)
	return found.missing
}

// authenticate finds the token of a request.
func (s *Stack) authenticate(r *http.Request, q *request) {
	q.authenticated = s.options.Tokens == nil
	if secret := bearerOf(r.Header.Get("Authorization")); secret != "" && !q.authenticated {
		if token, known := s.options.Tokens.Find(secret); known {
			q.bearer, q.secret, q.authenticated = token, secret, true
		}
	}
	if c := socketOf(q.connection); c != nil && q.authenticated {
		c.authenticate()
	}
}

// check returns a problem for a request that may not come from where it comes
// from, or whose token lacks the permission.
func (s *Stack) check(r *http.Request, q *request, found *route) error {
	if hosts := s.options.Hosts; len(hosts) > 0 && !slices.Contains(hosts, hostName(r.Host)) {
		return NewProblem(http.StatusMisdirectedRequest, "bad_host", nil,
			"the Host header %.100q is not one of this server's names: %s", r.Host, strings.Join(hosts, ", "))
	}
	// A web page of another origin can send requests, though it can't read the
	// answers.
	if s.origins.Check(r) != nil {
		return NewProblem(http.StatusForbidden, "foreign_origin", nil, "a page of another origin may not send this request")
	}
	needs := found.permission
	switch {
	case s.options.Tokens == nil || q.bearer.Role >= needs:
		return nil
	case !q.authenticated:
		return NewProblem(http.StatusUnauthorized, "unauthorized", nil,
			`this needs a token with the role %s: send "Authorization: Bearer TOKEN"`, needs)
	default:
		return NewProblem(http.StatusForbidden, "forbidden", nil,
			"this needs a token with the role %s: yours has %s", needs, q.bearer.Role)
	}
}

// hostName returns a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// bearerOf returns the token in an Authorization header, empty if it has none.
func bearerOf(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// maxRequestID is the maximum length of a client's request id; a longer one is
// replaced.
const maxRequestID = 64

// isPlain reports whether a text needs no escaping in a log.
func isPlain(text string, most int) bool {
	return text != "" && len(text) <= most && strings.Trim(text,
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:") == ""
}
