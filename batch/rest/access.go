package rest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/futures/httpapi"
)

// Role is what the bearer of a token may do. Each role may do what those below
// it may.
type Role int

// The roles.
const (
	// Nobody may see health and the API's description.
	Nobody Role = iota
	// Read may see everything.
	Read
	// Submit may make, cancel and retry batches and futures.
	Submit
	// Admin may install functions, and delete.
	Admin
)

// String returns the role's name in a file of tokens.
func (r Role) String() string {
	return [...]string{"nobody", "read", "submit", "admin"}[r]
}

// Bounds of files of tokens.
const (
	minToken     = 16
	maxTokenFile = 1 << 20
	// reloadTime is how often a request looks whether the file has changed.
	reloadTime = time.Second
)

// Tokens are the tokens that requests may bear, with their roles.
type Tokens struct {
	path   string
	logger *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	own    map[[sha256.Size]byte]Role
	roles  map[[sha256.Size]byte]Role
	looked time.Time
	stamp  fileStamp
}

type fileStamp struct {
	modified time.Time
	size     int64
}

// NewTokens returns one token that may do everything.
func NewTokens(admin string) *Tokens {
	t := &Tokens{}
	t.Also(admin)
	return t
}

// Also lets one more token do everything, whatever the file says.
func (t *Tokens) Also(admin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = map[[sha256.Size]byte]Role{sha256.Sum256([]byte(admin)): Admin}
}

// OpenTokens reads a file of tokens. It has a line for each: the role (read,
// submit or admin), a space and the token, of at least 16 characters without
// spaces; or only the token, which is an admin's. Empty lines, and those that
// begin with #, are passed over. The file is read again when it has changed, at
// the latest a second later; while it can't be read or is wrong, what was read
// before counts, and logger is told.
func OpenTokens(path string, logger *slog.Logger) (*Tokens, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	t := &Tokens{path: path, logger: logger, now: time.Now}
	return t, t.Reload()
}

// Reload reads the file again. On an error what was read before counts.
func (t *Tokens) Reload() error {
	if t.path == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.load()
}

func (t *Tokens) load() error {
	t.looked = t.now()
	stamp, err := stampOf(t.path)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	roles, err := parseTokens(content)
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	t.roles, t.stamp = roles, stamp
	return nil
}

func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	if info.Size() > maxTokenFile {
		return fileStamp{}, fmt.Errorf("%s has %d bytes: at most %d", path, info.Size(), maxTokenFile)
	}
	return fileStamp{info.ModTime(), info.Size()}, nil
}

func parseTokens(content []byte) (map[[sha256.Size]byte]Role, error) {
	roles := map[[sha256.Size]byte]Role{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxTokenFile)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		role, token := Admin, words[len(words)-1]
		if len(words) > 2 {
			return nil, fmt.Errorf("line %d has %d words: use ROLE TOKEN", n, len(words))
		}
		if len(words) == 2 {
			switch words[0] {
			case Read.String():
				role = Read
			case Submit.String():
				role = Submit
			case Admin.String():
			default:
				return nil, fmt.Errorf("line %d: there is no role %.20q: use read, submit or admin", n, words[0])
			}
		}
		if len(token) < minToken {
			return nil, fmt.Errorf("line %d: a token has at least %d characters", n, minToken)
		}
		roles[sha256.Sum256([]byte(token))] = role
	}
	if len(roles) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("there is no token in it: a line is ROLE TOKEN")
	}
	return roles, lines.Err()
}

// RoleOf returns what the bearer of a token may do. Its time does not depend on
// how much of a token is right.
func (t *Tokens) RoleOf(token string) Role {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	sum := sha256.Sum256([]byte(token))
	found := Nobody
	for _, roles := range []map[[sha256.Size]byte]Role{t.roles, t.own} {
		for known, role := range roles {
			if subtle.ConstantTimeCompare(known[:], sum[:]) == 1 {
				found = role
			}
		}
	}
	return found
}

// refresh reads the file again if it has changed.
func (t *Tokens) refresh() {
	if t.path == "" || t.now().Sub(t.looked) < reloadTime {
		return
	}
	t.looked = t.now()
	stamp, err := stampOf(t.path)
	if err == nil && stamp == t.stamp {
		return
	}
	if err == nil {
		err = t.load()
	}
	if err != nil {
		t.logger.Error("the tokens are those that were read before", "error", err)
	}
}

// admit returns the problem of a request that may not do what a role may.
func (s *server) admit(r *http.Request, needs Role) error {
	if needs == Nobody || s.options.Tokens == nil {
		return nil
	}
	token := httpapi.BearerToken(r)
	switch has := s.options.Tokens.RoleOf(token); {
	case has >= needs:
		return nil
	case has == Nobody:
		return httpapi.NewProblem(http.StatusUnauthorized, "unauthorized", nil,
			`this needs a token with the role %s: send "Authorization: Bearer TOKEN"`, needs)
	default:
		return httpapi.NewProblem(http.StatusForbidden, "forbidden", nil,
			"this needs a token with the role %s: yours has %s", needs, has)
	}
}
