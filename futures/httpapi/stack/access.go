package stack

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// Permission is what a request needs, and what the bearer of a token has: a role.
// Each includes those below it. The zero value is none: a route must declare
// its permission.
type Permission int

// The permissions.
const (
	// Public is for health and the API's description: no token is needed.
	Public Permission = iota + 1
	// Read may see everything.
	Read
	// Submit may also make, cancel and retry batches and futures.
	Submit
	// Admin may also install functions, and delete.
	Admin
)

// Permissions returns all permissions, the lowest first.
func Permissions() []Permission { return []Permission{Public, Read, Submit, Admin} }

// String returns the permission's name.
func (p Permission) String() string {
	if p < Public || p > Admin {
		return "undeclared"
	}
	return [...]string{"public", "read", "submit", "admin"}[p-Public]
}

// ParseRole returns the permission that a token can have by its name.
func ParseRole(name string) (Permission, bool) {
	for _, p := range []Permission{Read, Submit, Admin} {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// admit returns the problem of a request that may not be sent: by its Host
// header, its origin, its token, or since nothing is there.
func (s *Stack) admit(r *http.Request, q *request, found *route) error {
	if hosts := s.options.Hosts; len(hosts) > 0 && !slices.Contains(hosts, hostName(r.Host)) {
		return NewProblem(http.StatusMisdirectedRequest, "bad_host", nil,
			"the Host header %.100q is not one of this server's names: %s", r.Host, strings.Join(hosts, ", "))
	}
	// A web page of another origin can send requests, though not read answers.
	if s.origins.Check(r) != nil {
		return NewProblem(http.StatusForbidden, "foreign_origin", nil, "a page of another origin may not send this")
	}
	if err := s.authorize(r, q, found.permission); err != nil {
		return err
	}
	q.enter(r)
	return found.missing
}

// authorize returns the problem of a request whose bearer has too little
// permission.
func (s *Stack) authorize(r *http.Request, q *request, needs Permission) error {
	if s.options.Tokens == nil {
		return nil
	}
	known := false
	if secret := bearerOf(r); secret != "" {
		var token Token
		if token, known = s.options.Tokens.Find(secret); known {
			q.bearer = token
		}
	}
	switch {
	case q.bearer.Role >= needs:
		return nil
	case !known:
		return NewProblem(http.StatusUnauthorized, "unauthorized", nil,
			`this needs a token with the role %s: send "Authorization: Bearer TOKEN"`, needs)
	default:
		return NewProblem(http.StatusForbidden, "forbidden", nil,
			"this needs a token with the role %s: yours has %s", needs, q.bearer.Role)
	}
}

// hostName is a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// bearerOf returns the token that a request bears, empty if it bears none.
func bearerOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// maxRequestID is the longest request id of a client that is kept.
const maxRequestID = 64

// isPlain tells whether a text can stand in a log as it is.
func isPlain(text string, most int) bool {
	return text != "" && len(text) <= most && strings.Trim(text,
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:") == ""
}
