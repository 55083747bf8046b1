//go:build fdb

package fdbkv_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/internal/fdbtest"
)

// TestTLS opens a cluster that speaks TLS, with a certificate and without one, in
// processes of their own: the library reads its variables once.
func TestTLS(t *testing.T) {
	if file := os.Getenv(tlsVariable); file != "" {
		useTLS(t, file)
		return
	}
	t.Parallel()
	server.ClusterFile(t)
	env := certificates(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	secured, err := fdbtest.StartTLS(ctx, env)
	require.NoError(t, err)
	defer func() { require.NoError(t, secured.Stop()) }()
	for _, env := range [][]string{env, nil} {
		command := exec.Command(os.Args[0], "-test.run=^TestTLS$")
		command.Env = append(append(os.Environ(), tlsVariable+"="+secured.ClusterFile(t)), env...)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
}

func useTLS(t *testing.T, file string) {
	if os.Getenv("FDB_TLS_CERTIFICATE_FILE") == "" {
		_, err := fdbkv.Open(t.Context(), file, fdbkv.Options{ConnectTimeout: 3 * time.Second})
		require.ErrorIs(t, err, kv.ErrUnavailable)
		return
	}
	db, err := fdbkv.Open(t.Context(), file, fdbkv.Options{ConnectTimeout: startTimeout})
	require.NoError(t, err)
	set(t, db, key(t, "a"), "secret")
	require.Equal(t, "secret", get(t, db, key(t, "a")))
	require.NoError(t, db.Close())
}

// certificates writes an authority, a key and a certificate, and returns the
// variables that name them.
func certificates(t *testing.T) []string {
	dir := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return file
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	node := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	nodeKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	signed, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	require.NoError(t, err)
	certificate, err := x509.CreateCertificate(rand.Reader, node, authority, &nodeKey.PublicKey, authorityKey)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(nodeKey)
	require.NoError(t, err)
	return []string{
		"FDB_TLS_CA_FILE=" + write("ca.pem", "CERTIFICATE", signed),
		"FDB_TLS_CERTIFICATE_FILE=" + write("cert.pem", "CERTIFICATE", certificate),
		"FDB_TLS_KEY_FILE=" + write("key.pem", "PRIVATE KEY", private),
	}
}
