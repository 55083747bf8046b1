package kvopen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/internal/trust"
)

// Parameters of a remote store's name.
const (
	parameterTokenFile = "token-file"
	parameterCA        = "ca"
	parameterTLS       = "tls"
)

// tokenVariable is the environment's variable that holds a remote store's token.
const tokenVariable = "FUTURA_REMOTE_TOKEN"

// maxTokenFile bounds a file with a token, in bytes.
const maxTokenFile = 64 << 10

// remoteName is the name of a remote store taken apart.
type remoteName struct {
	address   remote.Address
	tokenFile string
	ca        string
	tls       bool
	plainText bool
}

// parseRemote reads what stands behind remote: and before the parameters.
func parseRemote(path string, parameters url.Values) (remoteName, error) {
	address, err := remote.ParseAddress(path)
	if err != nil {
		return remoteName{}, err
	}
	n := remoteName{address: address, tokenFile: parameters.Get(parameterTokenFile), ca: parameters.Get(parameterCA)}
	switch parameters.Get(parameterTLS) {
	case "":
		n.tls = n.ca != ""
	case "on":
		n.tls = true
	case "off":
		n.plainText = true
	default:
		return remoteName{}, errors.New("tls must be on or off")
	}
	if n.plainText && n.ca != "" {
		return remoteName{}, errors.New("ca needs tls")
	}
	return n, nil
}

// openRemote connects to another process.
func openRemote(ctx context.Context, n remoteName, o Options) (kv.Database, error) {
	token, secure, err := n.credentials()
	if err != nil {
		return nil, fmt.Errorf("kvopen: %w", err)
	}
	store, err := remote.Open(ctx, n.address, remote.Options{PlainText: n.plainText, DialTimeout: o.ConnectTimeout,
		GiveUpAfter: o.GiveUpAfter, Logger: o.Logger, Token: token, TLS: secure, Renew: n.credentials})
	switch {
	case token == "" && errors.Is(err, remote.ErrBadToken):
		return nil, fmt.Errorf("kvopen: %w, by ?%s=FILE or $%s", err, parameterTokenFile, tokenVariable)
	case err != nil:
		return nil, fmt.Errorf("kvopen: %w", err)
	}
	return store, nil
}

// credentials reads what a connection is made with: both files may be replaced while the process runs.
func (n remoteName) credentials() (token string, secure *tls.Config, err error) {
	token = os.Getenv(tokenVariable)
	if n.tokenFile != "" {
		secret, err := trust.ReadSecret(n.tokenFile, maxTokenFile)
		if err != nil {
			return "", nil, fmt.Errorf("the token of %s: %w", n.address, err)
		}
		token = strings.TrimSpace(string(secret))
	}
	if n.tls {
		secure = &tls.Config{MinVersion: tls.VersionTLS13}
	}
	if n.ca != "" {
		pem, err := os.ReadFile(n.ca)
		if err != nil {
			return "", nil, fmt.Errorf("the certificate for %s: %w", n.address, err)
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return "", nil, fmt.Errorf("the certificate for %s: %s contains none", n.address, n.ca)
		}
	}
	return token, secure, nil
}
