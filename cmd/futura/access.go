package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/trust"
)

const (
	// ownTokenFile has the token of this user's commands, in the directory of a
	// store: it stays the same over restarts.
	ownTokenFile = "token"
	// namedTokensFile has the named tokens of others.
	namedTokensFile = "tokens"
	// minToken is the shortest token that counts as a secret.
	minToken = 16
	// maxToken bounds a file with a token, in bytes.
	maxToken = 64 << 10
)

// accessFlags say who may send HTTP requests.
type accessFlags struct {
	tokenFile string
	named     string
	open      bool
	plain     bool
	log       bool
}

func (f *accessFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.named, "tokens", "",
		"a file with named tokens, made by futura token create (default: DIR/tokens of an embedded store)")
	flags.StringVar(&f.tokenFile, "token-file", "",
		"a file with one token that may do everything (default: DIR/token of an embedded store, else futura/token in the "+
			"user's configuration directory; created if missing)")
	flags.BoolVar(&f.plain, "plain-http", false, "allow HTTP without TLS beyond this machine, where others can read it")
	flags.BoolVar(&f.log, "access-log", false, "log each request")
}

// check refuses to serve without tokens, or in plain text, beyond this machine.
func (f *accessFlags) check(listen, flag string, secure bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	ip := net.ParseIP(host)
	switch loopback := host == "localhost" || ip != nil && ip.IsLoopback(); {
	case loopback:
		return nil
	case f.open:
		return usageError{fmt.Errorf("%s %s is not a loopback address: leave out --open, and grant access with --tokens",
			flag, listen)}
	case !secure && !f.plain:
		return usageError{fmt.Errorf("%s %s is not a loopback address, and there is no TLS: others could read tokens and "+
			"data on the way; use --tls-cert and --tls-key, or allow it with --plain-http", flag, listen)}
	default:
		return nil
	}
}

// read reads the files that are named, before anything begins. The tokens are nil
// if none is needed, and the token is empty if none is named.
func (f *accessFlags) read(log *slog.Logger) (tokens *stack.Tokens, token string, err error) {
	if f.open {
		if f.named != "" || f.tokenFile != "" {
			return nil, "", usageError{errors.New("--open excludes --tokens and --token-file")}
		}
		return nil, "", nil
	}
	tokens = &stack.Tokens{}
	if f.named != "" {
		if tokens, err = stack.OpenTokens(f.named, log); err != nil {
			return nil, "", usageError{err}
		}
	}
	if f.tokenFile != "" {
		token, err = readToken(f.tokenFile)
	}
	return tokens, token, err
}

// complete adds what the store's own directory has: its named tokens, unless
// others are named, and a token for commands of this user, which is made if it
// is not there: in the user's configuration directory where the store's takes none.
func (f *accessFlags) complete(n *node) (err error) {
	n.named, n.tokenFile = f.named, f.tokenFile
	dir, embedded := embeddedDir(n.app.store)
	if info, missing := os.Stat(dir); missing != nil || !info.IsDir() {
		embedded = false
	}
	if named := filepath.Join(dir, namedTokensFile); embedded && f.named == "" && !f.open {
		tokens, err := stack.OpenTokens(named, n.log)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return usageError{err}
		}
		n.tokens = tokens // futura token create may create the file later
	}
	if n.token != "" {
		return nil
	}
	if !embedded {
		return n.useUserToken()
	}
	own := filepath.Join(dir, ownTokenFile)
	if n.token, err = keepToken(own); !cantWrite(err) {
		n.tokenFile = cmp.Or(n.tokenFile, own)
		return err
	}
	return f.withoutRoom(n, err)
}

// withoutRoom gives a node a token whose store's directory takes none, as full says: that of the user. Where there
// is no place for that either it has one that nobody knows, if others are named or none is needed.
func (f *accessFlags) withoutRoom(n *node, full error) error {
	err := n.useUserToken()
	switch {
	case err == nil:
		n.log.Warn("the store's directory has no room for a token: that of the user is taken", "token", n.tokenFile,
			"error", full)
	case (f.open || f.named != "") && n.doorListen == "":
		n.token, err = stack.NewSecret(), nil
	default:
		err = fmt.Errorf("%w: nor beside the store: %w", err, full)
	}
	return err
}

// useUserToken gives a node the token of userToken.
func (n *node) useUserToken() error {
	token, path, err := userToken()
	if err == nil {
		n.token, n.tokenFile = token, cmp.Or(n.tokenFile, path)
	}
	return err
}

// userToken returns the token of servers whose store has no directory, and its
// file, which is the user's: a token that is printed ends in logs.
func userToken() (token, path string, err error) {
	dir, err := os.UserConfigDir()
	if err == nil {
		dir = filepath.Join(dir, "futura")
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = trust.Directory(dir)
	}
	if err != nil {
		return "", "", noPlace(err)
	}
	path = filepath.Join(dir, ownTokenFile)
	if token, err = keepToken(path); cantWrite(err) {
		err = noPlace(err)
	}
	return token, path, err
}

// noPlace says that there is none for a token: a mistake of the call, unless the disk may have room later.
func noPlace(err error) error {
	said := fmt.Errorf("there is no place for a token: name a file with --token-file: %w", err)
	if cantWrite(err) {
		return said
	}
	return usageError{said}
}

// keepToken returns the token of a file, which is made if it is not there: whole,
// or not at all.
func keepToken(path string) (string, error) {
	if _, err := os.Stat(path); err == nil {
		return readToken(path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return "", err
	}
	token := stack.NewSecret()
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if errors.Is(err, fs.ErrExist) {
		return readToken(path)
	}
	return token, err
}

// readToken returns the token of a file that only its owner may read.
func readToken(path string) (string, error) {
	content, err := trust.ReadSecret(path, maxToken)
	if err != nil {
		return "", usageError{err}
	}
	token := strings.TrimSpace(string(content))
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", usageError{fmt.Errorf("%s: a token is one word of at least %d characters", path, minToken)}
	}
	return token, nil
}

// reloadAtHangup reads the tokens and the certificate again at SIGHUP, until the returned function
// is called.
func reloadAtHangup(n *node) func() {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangups {
			if err := n.tokens.Reload(); err != nil {
				n.log.Error("reloading the tokens failed; keeping the previous ones", "error", err)
			}
			if err := n.certificate.reload(); err != nil {
				n.log.Error("reloading the certificate failed; keeping the previous one", "error", err)
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}
