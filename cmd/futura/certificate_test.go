package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writePair writes a new certificate for 127.0.0.1 with this number, and its key. It returns who trusts it.
func writePair(t *testing.T, cert, key string, number int64) *x509.CertPool {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}

// TestCertificateChanges renews the certificate of a listener by its files.
func TestCertificateChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writePair(t, cert, key, 1)
	var logs bytes.Buffer
	c, err := openCertificate(cert, key, slog.New(slog.NewTextHandler(&logs, nil)))
	require.NoError(t, err)
	now := time.Now()
	c.now = func() time.Time { return now }
	listener, err := tls.Listen("tcp", "127.0.0.1:0", c.config())
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	dial := func(roots *x509.CertPool) error {
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots})
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	require.NoError(t, dial(first))

	second := writePair(t, cert, key, 2)
	require.NoError(t, dial(first), "it was read a moment ago")
	now = now.Add(certificateTime)
	require.NoError(t, dial(second))
	require.Error(t, dial(first))

	old, err := os.ReadFile(key)
	require.NoError(t, err)
	third := writePair(t, cert, key, 3)
	renewed, err := os.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, old, 0o600))
	now = now.Add(certificateTime)
	require.NoError(t, dial(second), "the key is of the previous one")
	c.mu.Lock()
	require.Contains(t, logs.String(), "keeping the previous one")
	c.mu.Unlock()

	require.NoError(t, os.WriteFile(key, renewed, 0o600))
	require.NoError(t, c.reload())
	require.NoError(t, dial(third))

	require.NoError(t, os.Remove(cert))
	now = now.Add(certificateTime)
	require.NoError(t, dial(third), "the file is gone")
	require.Error(t, c.reload())
	require.NoError(t, dial(third))
}
