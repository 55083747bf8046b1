package kvopen_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
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

// TestOpenRemoteFollowsItsFiles has a server come back with another token: who names a file goes on once that has it.
func TestOpenRemoteFollowsItsFiles(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "token")
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	begin := func(token string) (end func()) {
		l, err := remote.ListenUnix(socket)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- remote.Serve(ctx, l, store, remote.ServerOptions{Token: token}) }()
		return func() { cancel(); require.NoError(t, <-done) }
	}
	end := begin("one")
	require.NoError(t, os.WriteFile(file, []byte("one"), 0o600))
	db, err := kvopen.Open(t.Context(), "remote:unix:"+socket+"?token-file="+file, kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	write(t, db)
	end()
	require.NoError(t, os.Remove(file))
	end = begin("two")
	t.Cleanup(func() { end() })
	require.NoError(t, os.WriteFile(file, []byte("two"), 0o600))
	require.Equal(t, "value", read(t, db))

	_, err = kvopen.Open(t.Context(), "remote:unix:"+socket, kvopen.Options{})
	require.ErrorIs(t, err, remote.ErrBadToken)
	require.ErrorContains(t, err, "by ?token-file=FILE or $FUTURA_REMOTE_TOKEN")
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

// writeRecord says in a store's directory which process shares it.
func writeRecord(t *testing.T, dir, content string, mode os.FileMode) {
	path := filepath.Join(dir, "sharing.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
}

// TestOpenFindsTheHolder opens an embedded store that is open already: through the
// process that shares it, and else with an error that says what to do.
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
	fails(kvopen.Options{}, "does not share it", "futura.Open")
	fails(kvopen.Options{Share: true, InUseWait: time.Millisecond}, "does not serve it", "have it share the store")

	socket := filepath.Join(dir, "s")
	served := `{"pid":17,"socket":"` + socket + `"}`
	writeRecord(t, dir, served, 0o600)
	fails(kvopen.Options{}, "process 17 should serve it", "nothing listens", "if that process is gone")
	l, err := remote.ListenUnix(socket)
	require.NoError(t, err)
	serve(t, l, remote.ServerOptions{})
	for _, share := range []bool{false, true} {
		db, err := kvopen.Open(t.Context(), name, kvopen.Options{Share: share})
		require.NoError(t, err)
		write(t, db)
		require.Equal(t, "value", read(t, db))
		require.NoError(t, db.Close())
	}

	fails(kvopen.Options{Exclusive: true}, "process 17 has it open: stop that process")
	writeRecord(t, dir, fmt.Sprintf(`{"pid":%d,"socket":%q}`, os.Getpid(), socket), 0o600)
	fails(kvopen.Options{Exclusive: true}, "this process has it open: use that store")
	for _, bad := range []string{served, `{"pid":17}`, `not JSON`} {
		writeRecord(t, dir, bad, 0o622)
		fails(kvopen.Options{}, "does not share it")
	}
}

// TestTheHolderIsStopped has the process that shares a store take connections and not answer: whoever opens it is
// told so, in the time that it gave.
func TestTheHolderIsStopped(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	held, err := kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, held.Close()) })
	socket := filepath.Join(dir, "s")
	writeRecord(t, dir, `{"pid":17,"socket":"`+socket+`"}`, 0o600)
	l, err := remote.ListenUnix(socket) // nobody accepts: the system does
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	for _, o := range []kvopen.Options{
		{GiveUpAfter: 100 * time.Millisecond, InUseWait: time.Minute},
		{ConnectTimeout: 10 * time.Millisecond},
		{ConnectTimeout: 10 * time.Millisecond, Share: true, InUseWait: time.Millisecond},
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // the usual ConnectTimeout is longer
		_, err = kvopen.Open(ctx, "embedded:"+dir, o)
		require.NoError(t, ctx.Err())
		cancel()
		require.ErrorIs(t, err, kv.ErrStoreInUse)
		require.Less(t, time.Since(began), 20*time.Second)
		require.Regexp(t, `^kvopen: embedded:\S+: store is in use: process 17 has it open, is alive and has not `+
			`answered for \S+: if it was stopped, continue it with kill -CONT 17, else end it$`, err.Error())
	}
	writeRecord(t, dir, `{"socket":"`+socket+`"}`, 0o600)
	_, err = kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{ConnectTimeout: 10 * time.Millisecond})
	require.ErrorContains(t, err, "the process that has it open is alive")
	_, err = kvopen.Open(t.Context(), "remote:unix:"+socket, kvopen.Options{ConnectTimeout: 10 * time.Millisecond})
	require.ErrorIs(t, err, remote.ErrSilent)
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.NotContains(t, err.Error(), "TLS")
}

// TestTheHolderHasLeftNoRecord has the disk take none of the process that shares a store, or keep that of the one
// before: the store is reached at its usual socket.
func TestTheHolderHasLeftNoRecord(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	held, err := kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{Share: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, held.Close()) })
	write(t, held)
	for _, leave := range []func(){
		func() { require.NoError(t, os.Remove(filepath.Join(dir, "sharing.json"))) },
		func() { writeRecord(t, dir, `{"pid":0}`, 0o600) },
	} {
		leave()
		for _, takeOver := range []bool{false, true} {
			db, err := kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{TakeOver: takeOver})
			require.NoError(t, err)
			require.Equal(t, "value", read(t, db))
			leave()
			require.NoError(t, db.Close())
		}
		_, err := kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{Exclusive: true})
		require.ErrorIs(t, err, kv.ErrStoreInUse)
	}
}

// TestTheHolderEndsAsItIsFound has the process that shares a store end when it has answered, before the store is opened
// through it.
func TestTheHolderEndsAsItIsFound(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	held, err := kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{})
	require.NoError(t, err)
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	writeRecord(t, dir, `{"pid":17,"socket":"`+socket+`"}`, 0o600)
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = errors.Join(conn.Close(), l.Close(), held.Close())
		}
		ended <- err
	}()
	db, err := kvopen.Open(t.Context(), "embedded:"+dir, kvopen.Options{InUseWait: time.Minute})
	require.NoError(t, <-ended)
	require.NoError(t, err)
	write(t, db)
	require.Equal(t, "value", read(t, db))
	require.NoError(t, db.Close())
}

// TestShare opens a store twice to share it, and by choice to share it with no other process.
func TestShare(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fo")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	name, share := "embedded:"+dir, kvopen.Options{Share: true, InUseWait: time.Millisecond}
	first, err := kvopen.Open(t.Context(), name, share)
	require.NoError(t, err)
	second, err := kvopen.Open(t.Context(), name, share)
	require.NoError(t, err)
	write(t, second)
	require.NoError(t, first.Close())
	require.Equal(t, "value", read(t, second))
	_, err = kvopen.Open(t.Context(), name, kvopen.Options{Share: true, Exclusive: true})
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.NoError(t, second.Close())

	alone, err := kvopen.Open(t.Context(), name+"?share=off", share)
	require.NoError(t, err)
	_, err = kvopen.Open(t.Context(), name, share)
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.NoError(t, alone.Close())
	_, err = kvopen.Open(t.Context(), name+"?share=perhaps", share)
	require.ErrorIs(t, err, kvopen.ErrBadName)
}
