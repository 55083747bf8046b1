package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/trust"
)

// certificateTime is the minimum time between two reads of the files of a certificate.
const certificateTime = time.Second

// certificate is a server's certificate. The server reads its files again at a handshake, at most once in
// certificateTime: whoever renews certificates restarts nothing. While they can't be read or don't fit each other,
// the previous one stays in force, and the error is logged.
type certificate struct {
	cert, key string // the files
	log       *slog.Logger
	now       func() time.Time

	mu   sync.Mutex
	pair *tls.Certificate
	read time.Time
}

// openCertificate reads the certificate that flags name. It returns nil if they name none.
func openCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, usageError{errors.New("--tls-cert and --tls-key need each other")}
	}
	c := &certificate{cert: cert, key: key, log: log, now: time.Now}
	if err := c.reload(); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// config returns the configuration of a server with the certificate, nil for none.
func (c *certificate) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}
}

// get returns the certificate for a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.read) >= certificateTime {
		if err := c.load(); err != nil {
			c.log.Error("reading the certificate again failed; keeping the previous one", "error", err)
		}
	}
	return c.pair, nil
}

// reload reads the files. On an error the previous certificate stays in force.
func (c *certificate) reload() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load()
}

func (c *certificate) load() error {
	c.read = c.now()
	if err := trust.Secret(c.key); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s and --tls-key %s: %w", c.cert, c.key, err)
	}
	c.pair = &pair
	return nil
}
