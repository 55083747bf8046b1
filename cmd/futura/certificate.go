package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/trust"
)

// certificateTime is the minimum time between two looks at the files of a certificate.
const certificateTime = time.Second

// certificate is a server's certificate. The server looks at its files at a handshake, at most once in
// certificateTime, and reads them again if one has changed: whoever renews certificates restarts nothing. While they
// can't be read or don't fit each other, the previous one stays in force, and the error is logged.
type certificate struct {
	cert, key string // the files
	log       *slog.Logger
	now       func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	stamps [2]fileStamp
}

// fileStamp changes with a file.
type fileStamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) (fileStamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	if !info.Mode().IsRegular() {
		return fileStamp{}, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	return fileStamp{info.ModTime(), info.Size()}, nil
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
	if c.now().Sub(c.looked) >= certificateTime {
		stamps, err := c.stampFiles()
		if err == nil && stamps != c.stamps {
			err = c.load()
		}
		if err != nil {
			c.log.Error("reading the certificate again failed; keeping the previous one", "error", err)
		}
		c.looked = c.now()
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
	stamps, err := c.stampFiles() // before they are read: a change meanwhile is seen at the next look
	if err == nil {
		err = trust.Secret(c.key)
	}
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s and --tls-key %s: %w", c.cert, c.key, err)
	}
	c.pair, c.stamps, c.looked = &pair, stamps, c.now()
	return nil
}

func (c *certificate) stampFiles() (stamps [2]fileStamp, err error) {
	for i, path := range []string{c.cert, c.key} {
		if stamps[i], err = stampOf(path); err != nil {
			return stamps, err
		}
	}
	return stamps, nil
}
