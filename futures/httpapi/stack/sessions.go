package stack

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/internal/clock"
)

// Bounds of logins.
const (
	// LinkTime is how long a link that logs in is good for.
	LinkTime = time.Hour
	// SessionTime is how long a session lasts.
	SessionTime = 24 * time.Hour
	// maxLogins bounds the links, and the sessions, of a server. The oldest of the token that
	// has most gives way.
	maxLogins = 1000
)

// sessionsPath is the path of sessions.
const sessionsPath = "/api/v1/sessions"

// session stands for a token: in a page, which should not hold the token itself, or in a link.
type session struct {
	of    [sha256.Size]byte // the token's secret
	until time.Time
	// last is when all that begins with it ends too, zero for never: who has a session can't
	// prolong it.
	last time.Time
}

// logins are secrets that stand for tokens, by their sums. A sum is of 256 random bits, so
// that the time of a lookup tells nothing of use.
type logins struct {
	mu              sync.Mutex
	links, sessions map[[sha256.Size]byte]session
}

// put adds a secret to some of the logins, and returns it.
func (l *logins) put(to *map[[sha256.Size]byte]session, s session, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *to == nil {
		*to = map[[sha256.Size]byte]session{}
	}
	maps.DeleteFunc(*to, func(_ [sha256.Size]byte, one session) bool { return !now.Before(one.until) })
	if len(*to) >= maxLogins {
		makeRoom(*to)
	}
	secret := NewSecret()
	(*to)[sha256.Sum256([]byte(secret))] = s
	return secret
}

// makeRoom removes the oldest login of the token that has most of them, so that the holder
// of one token can't push out those of others.
func makeRoom(all map[[sha256.Size]byte]session) {
	count := map[[sha256.Size]byte]int{}
	for _, one := range all {
		count[one.of]++
	}
	var oldest [sha256.Size]byte
	for sum, one := range all {
		was, most := all[oldest], count[all[oldest].of]
		if n := count[one.of]; n > most || n == most && one.until.Before(was.until) {
			oldest = sum
		}
	}
	delete(all, oldest)
}

// NewLink returns the secret of a link: Login takes it once, within LinkTime, and it stands
// for the token with a secret, or for the session with it and no longer. It is empty if that
// is no valid token.
func (t *Tokens) NewLink(secret string) string {
	token, ok := t.Find(secret)
	if !ok {
		return ""
	}
	now := t.time()
	return t.logins.put(&t.logins.links, session{token.sum, now.Add(LinkTime), token.Expires}, now)
}

// Login returns the secret of a new session for that of a link, which is used up. It is
// false for an unknown or expired one. The session ends after SessionTime, with Logout, and
// when its token is revoked or expires.
func (t *Tokens) Login(link string) (secret string, ok bool) {
	sum := sha256.Sum256([]byte(link))
	t.logins.mu.Lock()
	found, ok := t.logins.links[sum]
	delete(t.logins.links, sum)
	t.logins.mu.Unlock()
	if !ok || !t.time().Before(found.until) {
		return "", false
	}
	return t.newSession(found.of, found.last), true
}

// newSession begins a session of a token, which ends at last if that is not zero.
func (t *Tokens) newSession(of [sha256.Size]byte, last time.Time) string {
	now := t.time()
	until := now.Add(SessionTime)
	if !last.IsZero() && last.Before(until) {
		until = last
	}
	return t.logins.put(&t.logins.sessions, session{of, until, last}, now)
}

// Logout ends a session.
func (t *Tokens) Logout(secret string) {
	t.logins.mu.Lock()
	defer t.logins.mu.Unlock()
	delete(t.logins.sessions, sha256.Sum256([]byte(secret)))
}

// session returns the session with a sum, and the sum of its token.
func (l *logins) session(sum [sha256.Size]byte, now time.Time) (found session, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok = l.sessions[sum]
	return found, ok && now.Before(found.until)
}

// Session is what a token, or a session that stands for it, allows.
type Session struct {
	Token string     `json:"token,omitempty" doc:"The session's secret, to be sent as a token; after a login only"`
	Name  string     `json:"name,omitempty" doc:"The name of its token"`
	Role  string     `json:"role" enum:"read,submit,admin"`
	Until *time.Time `json:"until,omitempty" doc:"When it ends; left out for never"`
}

// sessionOf describes a token.
func sessionOf(t Token) Session {
	s := Session{Name: t.Name, Role: t.Role.String()}
	if !t.Expires.IsZero() {
		until := t.Expires.UTC()
		s.Until = &until
	}
	return s
}

type sessionOutput struct{ Body Session }

type loginInput struct {
	Authorization string `header:"Authorization" doc:"Bearer TOKEN, instead of a link"`
	Body          *struct {
		_    struct{} `additionalProperties:"false"`
		Link string   `json:"link,omitempty" maxLength:"100" doc:"The secret of a link that logs in"`
	} `required:"false"`
}

type linkOutput struct {
	Body struct {
		Link  string    `json:"link" doc:"Its secret: it logs in once"`
		Until time.Time `json:"until" doc:"In an hour, or when the token or session ends that makes it"`
	}
}

// registerSessions adds the routes by which a page gets a session of its own.
func (s *Stack) registerSessions() {
	operation := func(method, path, id, summary, description string) huma.Operation {
		return huma.Operation{
			Method: method, Path: path, OperationID: id, Summary: summary, Description: description,
			Tags: []string{"sessions"}, MaxBodyBytes: 4 << 10, RejectUnknownQueryParameters: true,
		}
	}
	login := operation(http.MethodPost, sessionsPath, "login", "Begin a session",
		"With a link, or with a token as any request has it. It stands for that token, ends after a day, and ends with it.")
	login.DefaultStatus = http.StatusCreated
	Register(s, Public, login, s.login)
	Register(s, Read, operation(http.MethodPost, "/api/v1/links", "make-link", "Make a link that logs in once",
		"Whoever opens it within an hour has a session of the request's token."), s.makeLink)
	Register(s, Admin, operation(http.MethodGet, "/api/v1/tokens", "list-tokens", "List the tokens of the server",
		"Without their secrets."),
		func(context.Context, *struct{}) (*tokensOutput, error) {
			out := &tokensOutput{}
			if out.Body.Tokens = []TokenView{}; s.options.Tokens != nil {
				out.Body.Tokens = s.options.Tokens.views()
			}
			return out, nil
		})
	Register(s, Read, operation(http.MethodGet, sessionsPath+"/this", "get-session", "Say what the token allows", ""),
		func(ctx context.Context, _ *struct{}) (*sessionOutput, error) {
			if s.options.Tokens == nil {
				return &sessionOutput{Session{Role: Admin.String()}}, nil
			}
			return &sessionOutput{sessionOf(requestOf(ctx).bearer)}, nil
		})
	Register(s, Read, operation(http.MethodDelete, sessionsPath+"/this", "logout", "End the session", ""),
		func(ctx context.Context, _ *struct{}) (*struct{}, error) {
			if s.options.Tokens != nil {
				s.options.Tokens.Logout(requestOf(ctx).secret)
			}
			return nil, nil
		})
}

// TokenView is a token without its secret.
type TokenView struct {
	Name    string     `json:"name"`
	Role    string     `json:"role" enum:"read,submit,admin"`
	Expires *time.Time `json:"expires,omitempty" doc:"Left out for never"`
	Expired bool       `json:"expired"`
}

// View returns the view of a token at a time.
func (t *Token) View(now time.Time) TokenView {
	v := TokenView{Name: t.Name, Role: t.Role.String()}
	if !t.Expires.IsZero() {
		v.Expires, v.Expired = &t.Expires, !now.Before(t.Expires)
	}
	return v
}

type tokensOutput struct {
	Body struct {
		Tokens []TokenView `json:"tokens" doc:"Those of the server's file, then its own"`
	}
}

// views returns all tokens, without their secrets.
func (t *Tokens) views() []TokenView {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	all := []TokenView{}
	for _, tokens := range [][]Token{t.stored, t.own} {
		for i := range tokens {
			all = append(all, tokens[i].View(t.time()))
		}
	}
	return all
}

func (s *Stack) login(ctx context.Context, in *loginInput) (*sessionOutput, error) {
	q, tokens, link := requestOf(ctx), s.options.Tokens, ""
	if in.Body != nil {
		link = in.Body.Link
	}
	secret, ok := "", q.authenticated
	switch {
	case tokens == nil:
		return &sessionOutput{Session{Role: Admin.String()}}, nil
	case link != "":
		secret, ok = tokens.Login(link)
	case ok:
		secret = tokens.newSession(q.bearer.sum, q.bearer.Expires)
	}
	switch {
	case ok:
	case link == "" && bearerOf(in.Authorization) == "":
		return nil, BadRequest("send the secret of a link, or a token")
	case link == "":
		return nil, NewProblem(http.StatusUnauthorized, "unauthorized", nil, "this token is unknown, or has expired")
	default:
		return nil, NewProblem(http.StatusUnauthorized, "unauthorized", nil,
			"the link was used, or is older than %v: make another with futura ui, or send a token", LinkTime)
	}
	token, ok := tokens.Find(secret)
	if !ok {
		return nil, NewProblem(http.StatusUnauthorized, "unauthorized", nil, "the token of this link is not valid any more")
	}
	out := &sessionOutput{sessionOf(token)}
	out.Body.Token = secret
	return out, nil
}

func (s *Stack) makeLink(ctx context.Context, _ *struct{}) (*linkOutput, error) {
	out := &linkOutput{}
	if s.options.Tokens == nil {
		return nil, NewProblem(http.StatusConflict, "no_login", nil, "this server needs no token, and so no login")
	}
	out.Body.Link = s.options.Tokens.NewLink(requestOf(ctx).secret)
	out.Body.Until = clock.Earlier(s.options.Tokens.time().Add(LinkTime), requestOf(ctx).bearer.Expires).UTC()
	return out, nil
}
