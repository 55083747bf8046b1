package kvopen_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
)

// serve serves a store in memory until the end of the test.
func serve(t *testing.T, l net.Listener, o remote.ServerOptions) {
	store := embedded.OpenMemory(embedded.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- remote.Serve(ctx, l, store, o) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, store.Close())
	})
}

func TestOpenRemoteSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	name := "remote:unix:" + filepath.Join(dir, "s")
	_, err = kvopen.Open(t.Context(), name, kvopen.Options{})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, "nothing listens")

	l, err := remote.ListenUnix(filepath.Join(dir, "s"))
	require.NoError(t, err)
	serve(t, l, remote.ServerOptions{})
	first, err := kvopen.Open(t.Context(), name, kvopen.Options{})
	require.NoError(t, err)
	write(t, first)
	require.NoError(t, first.Close())
	second, err := kvopen.Open(t.Context(), name, kvopen.Options{})
	require.NoError(t, err)
	require.Equal(t, "value", read(t, second))
	require.NoError(t, second.Close())
}

func TestOpenRemoteToken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	serve(t, l, remote.ServerOptions{Token: "secret"})
	name := "remote:tcp:" + l.Addr().String()
	_, err = kvopen.Open(t.Context(), name, kvopen.Options{})
	require.ErrorIs(t, err, remote.ErrBadToken)

	t.Setenv("FUTURA_REMOTE_TOKEN", "secret")
	db, err := kvopen.Open(t.Context(), name, kvopen.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Close())

	t.Setenv("FUTURA_REMOTE_TOKEN", "")
	file := filepath.Join(t.TempDir(), "token")
	_, err = kvopen.Open(t.Context(), name+"?token-file="+file, kvopen.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	db, err = kvopen.Open(t.Context(), name+"?token-file="+file, kvopen.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestOpenRemoteRefusesPlainText(t *testing.T) {
	t.Parallel()
	_, err := kvopen.Open(t.Context(), "remote:tcp:192.0.2.1:1", kvopen.Options{})
	require.ErrorIs(t, err, remote.ErrInsecure)
	_, err = kvopen.Open(t.Context(), "remote:tcp:192.0.2.1:1?ca=missing", kvopen.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOpenRemoteTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	dir := t.TempDir()
	ca, token, empty := filepath.Join(dir, "ca"), filepath.Join(dir, "token"), filepath.Join(dir, "empty")
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(ca, encoded, 0o600))
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	own := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	serve(t, l, remote.ServerOptions{Token: "secret", TLS: &tls.Config{Certificates: []tls.Certificate{own}}})
	name := "remote:tcp:" + l.Addr().String() + "?token-file=" + token
	db, err := kvopen.Open(t.Context(), name+"&ca="+ca, kvopen.Options{})
	require.NoError(t, err)
	write(t, db)
	require.Equal(t, "value", read(t, db))
	require.NoError(t, db.Close())

	_, err = kvopen.Open(t.Context(), name+"&ca="+empty, kvopen.Options{})
	require.ErrorContains(t, err, "contains none")
	_, err = kvopen.Open(t.Context(), name+"&tls=on", kvopen.Options{})
	var untrusted *tls.CertificateVerificationError
	require.ErrorAs(t, err, &untrusted)
}

// writeEndpoint says in a store's directory who serves it.
func writeEndpoint(t *testing.T, dir, content string, mode os.FileMode) {
	path := filepath.Join(dir, "endpoint.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
}

// TestOpenFindsTheHolder opens an embedded store that is open already: through the
// process that serves it, and else with an error that says what to do.
func TestOpenFindsTheHolder(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	name := "embedded:" + dir
	held, err := kvopen.Open(t.Context(), name, kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, held.Close()) })
	fails := func(o kvopen.Options, says ...string) {
		t.Helper()
		_, err := kvopen.Open(t.Context(), name, o)
		require.ErrorIs(t, err, kv.ErrStoreInUse)
		for _, text := range says {
			require.ErrorContains(t, err, text)
		}
	}
	fails(kvopen.Options{}, "does not serve it", "futura dev --store "+name)

	socket := filepath.Join(dir, "s")
	served := `{"url":"http://127.0.0.1:7420","pid":17,"store":"remote:unix:` + socket + `"}`
	writeEndpoint(t, dir, served, 0o600)
	fails(kvopen.Options{}, "process 17 should serve it", "nothing listens", "if that process is gone")
	l, err := remote.ListenUnix(socket)
	require.NoError(t, err)
	serve(t, l, remote.ServerOptions{})
	db, err := kvopen.Open(t.Context(), name, kvopen.Options{})
	require.NoError(t, err)
	write(t, db)
	require.Equal(t, "value", read(t, db))
	require.NoError(t, db.Close())

	fails(kvopen.Options{Exclusive: true}, "process 17 has it open and serves http://127.0.0.1:7420: stop that process")
	writeEndpoint(t, dir, served, 0o622)
	fails(kvopen.Options{}, "does not serve it")
	writeEndpoint(t, dir, `{"pid":17,"store":"remote:tcp:192.0.2.1:1"}`, 0o600)
	fails(kvopen.Options{}, "not a Unix socket")
	writeEndpoint(t, dir, `{"pid":17,"store":"remote:unix:?x"}`, 0o600)
	fails(kvopen.Options{}, "not a Unix socket")
	writeEndpoint(t, dir, `not JSON`, 0o600)
	fails(kvopen.Options{}, "does not serve it")
}
