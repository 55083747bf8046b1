package stack

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/trust"
)

// Bounds of token files.
const (
	maxTokenFile = 1 << 20
	maxTokenName = 64
	// reloadTime is the minimum time between two checks whether the file has
	// changed.
	reloadTime = time.Second
)

// Errors of tokens.
var (
	// ErrTokenExists is returned if a token has the name already.
	ErrTokenExists = errors.New("a token with this name exists")
	// ErrNoToken is returned if no token has the name.
	ErrNoToken = errors.New("there is no token with this name")
	// ErrBadTokens is returned for an invalid token file or token.
	ErrBadTokens = errors.New("bad tokens")
)

// Token describes a secret. It never holds the secret itself.
type Token struct {
	// Name appears in the access log.
	Name string
	// Role is the permission of the token: Read, Submit or Admin.
	Role Permission
	// Expires is when the token expires, zero for never.
	Expires time.Time

	sum [sha256.Size]byte
}

// Tokens are the tokens that requests may use. The zero value has none.
type Tokens struct {
	path   string
	logger *slog.Logger
	now    func() time.Time // nil for the system's

	mu     sync.Mutex
	own    []Token
	stored []Token
	looked time.Time
	stamp  fileStamp

	logins logins
}

type fileStamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

// NewSecret returns the secret of a token: 256 random bits in hex. It is stored
// as its SHA-256, which is as hard to guess as the secret.
func NewSecret() string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(random)
}

// NewTokens returns tokens with one token that may do everything.
func NewTokens(name, secret string) *Tokens {
	t := &Tokens{}
	t.Add(name, secret, Admin)
	return t
}

// Add adds a token to those of the file, whatever that says.
func (t *Tokens) Add(name, secret string, role Permission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = append(t.own, Token{Name: name, Role: role, sum: sha256.Sum256([]byte(secret))})
}

// OpenTokens reads a token file, which only its owner may read. A changed file
// is reloaded within a second; while it can't be read or is invalid, the
// previous tokens stay in force, and the error is logged. If the file does not
// exist, OpenTokens returns fs.ErrNotExist, and tokens that read the file once it
// has been created.
func OpenTokens(path string, logger *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, logger: cmp.Or(logger, slog.New(slog.DiscardHandler))}
	return t, t.load()
}

// Reload reads the file again, if there was one or is one now. On an error the previous tokens stay in force.
func (t *Tokens) Reload() error {
	if t.path == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.load()
	if errors.Is(err, fs.ErrNotExist) && t.stamp == (fileStamp{}) {
		return nil
	}
	return err
}

func (t *Tokens) load() error {
	t.looked = t.time()
	stamp, err := stampOf(t.path)
	if err != nil {
		return err
	}
	stored, err := ListTokens(t.path)
	if err != nil {
		return err
	}
	t.stored, t.stamp = stored, stamp
	return nil
}

func (t *Tokens) time() time.Time {
	if t.now != nil {
		return t.now()
	}
	return time.Now()
}

// refresh reads the file again if it has changed.
func (t *Tokens) refresh() {
	if t.path == "" || t.time().Sub(t.looked) < reloadTime {
		return
	}
	t.looked = t.time()
	stamp, err := stampOf(t.path)
	if err == nil && stamp == t.stamp || errors.Is(err, fs.ErrNotExist) && t.stamp == (fileStamp{}) {
		return
	}
	if err == nil {
		err = t.load()
	}
	if err != nil {
		t.logger.Error("reloading the tokens failed; keeping the previous ones", "error", err)
	}
}

// Find returns the token of a secret, or the one that the session with that secret stands
// for, unless the secret is unknown or has expired. It compares in constant time.
func (t *Tokens) Find(secret string) (found Token, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh()
	sum, now := sha256.Sum256([]byte(secret)), t.time()
	s, isSession := t.logins.session(sum, now)
	if isSession {
		sum = s.of
	}
	for _, tokens := range [][]Token{t.stored, t.own} {
		for i := range tokens {
			same := subtle.ConstantTimeCompare(tokens[i].sum[:], sum[:]) == 1
			if same && (tokens[i].Expires.IsZero() || now.Before(tokens[i].Expires)) {
				found, ok = tokens[i], true
			}
		}
	}
	if isSession && (found.Expires.IsZero() || s.until.Before(found.Expires)) {
		found.Expires = s.until
	}
	return found, ok
}

// stampOf returns the stamp of a file, which only its owner may read.
func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	if err := trust.Secret(path); err != nil {
		return fileStamp{}, fmt.Errorf("%w: %w", ErrBadTokens, err)
	}
	if info.Size() > maxTokenFile {
		return fileStamp{}, fmt.Errorf("%w: %s has %d bytes: at most %d", ErrBadTokens, path, info.Size(), maxTokenFile)
	}
	return fileStamp{info.ModTime(), info.Size(), info.Mode()}, nil
}

// ListTokens returns the tokens of a file. The file has a line for each: the
// name, the role (read, submit or admin), the SHA-256 of the secret in hex, and
// optionally the time when it expires (RFC 3339). Empty lines, and those that
// begin with #, are ignored.
func ListTokens(path string) ([]Token, error) {
	if _, err := stampOf(path); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tokens, err := parseTokens(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadTokens, path, err)
	}
	return tokens, nil
}

func parseTokens(content []byte) (tokens []Token, err error) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxTokenFile)
	names := map[string]bool{}
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		token, err := parseToken(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if names[token.Name] {
			return nil, fmt.Errorf("line %d: another token has the name %s", n, token.Name)
		}
		names[token.Name] = true
		tokens = append(tokens, token)
	}
	return tokens, lines.Err()
}

func parseToken(words []string) (t Token, err error) {
	if len(words) < 3 || len(words) > 4 {
		return t, fmt.Errorf("it has %d words: use NAME ROLE SHA256 [EXPIRES]", len(words))
	}
	if err := checkToken(words[0], words[1]); err != nil {
		return t, err
	}
	t.Name = words[0]
	t.Role, _ = ParseRole(words[1])
	sum, err := hex.DecodeString(words[2])
	if err != nil || len(sum) != sha256.Size {
		return t, fmt.Errorf("%.80q is not a SHA-256 in hex", words[2])
	}
	t.sum = [sha256.Size]byte(sum)
	if len(words) == 4 {
		t.Expires, err = time.Parse(time.RFC3339, words[3])
	}
	return t, err
}

func checkToken(name, role string) error {
	if !isPlain(name, maxTokenName) {
		return fmt.Errorf("the name %.80q: use at most %d of a to z, A to Z, 0 to 9, - _ . and :", name, maxTokenName)
	}
	if _, ok := ParseRole(role); !ok {
		return fmt.Errorf("there is no role %.20q: use read, submit or admin", role)
	}
	return nil
}

// CreateToken adds a token to a file, which it creates if necessary, and
// returns the secret, which is stored nowhere. It returns ErrTokenExists if the
// name is taken, and ErrBadTokens if the file has no room. Processes that change
// a file at the same time wait for each other.
func CreateToken(path, name, role string, expires time.Time) (secret string, err error) {
	if err := checkToken(name, role); err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadTokens, err)
	}
	unlock, err := lockTokens(path)
	if err != nil {
		return "", err
	}
	defer unlock()
	tokens, err := ListTokens(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if slices.ContainsFunc(tokens, func(t Token) bool { return t.Name == name }) {
		return "", fmt.Errorf("%w: %s", ErrTokenExists, name)
	}
	secret = NewSecret()
	t := Token{Name: name, Expires: expires, sum: sha256.Sum256([]byte(secret))}
	t.Role, _ = ParseRole(role)
	return secret, writeTokens(path, append(tokens, t))
}

// RevokeToken removes a token from a file. Servers that use the file refuse it
// within a second. It returns ErrNoToken if the file has no such token.
func RevokeToken(path, name string) error {
	unlock, err := lockTokens(path)
	if err != nil {
		return err
	}
	defer unlock()
	tokens, err := ListTokens(path)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.Name == name })
	if len(left) == len(tokens) {
		return fmt.Errorf("%w: %s", ErrNoToken, name)
	}
	return writeTokens(path, left)
}

// writeTokens replaces a file. A reader sees it whole or not at all.
func writeTokens(path string, tokens []Token) error {
	var content bytes.Buffer
	content.WriteString("# name role sha256 [expires]\n")
	for _, t := range tokens {
		fmt.Fprintf(&content, "%s %s %x", t.Name, t.Role, t.sum)
		if !t.Expires.IsZero() {
			fmt.Fprintf(&content, " %s", t.Expires.UTC().Format(time.RFC3339))
		}
		content.WriteByte('\n')
	}
	if content.Len() > maxTokenFile {
		return fmt.Errorf("%w: %s would have %d bytes, at most %d are allowed: revoke some tokens", ErrBadTokens, path,
			content.Len(), maxTokenFile)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDirectory(filepath.Dir(path))
}

// syncDirectory makes the names of a directory's files durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // not every system can sync a directory
	return d.Close()
}
