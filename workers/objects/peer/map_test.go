package peer

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects"
)

// TestMap maps objects of another store: they count there until they are closed,
// also when they were deleted.
func TestMap(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("files in memory are Linux's")
	}
	ctx := context.Background()
	held := openStore(t, objects.Options{Memory: 64 << 20})
	want := someBytes(3*objects.PieceSize + 5)
	ref, small := put(t, held, want), put(t, held, []byte("small"))
	address := serve(t, listenUnix(t), held, ServerOptions{MaxMapped: 2})
	client := newClient(t, Options{})
	one, err := client.Map(ctx, address, ref)
	require.NoError(t, err)
	two, err := client.Map(ctx, address, ref)
	require.NoError(t, err)
	_, err = client.Map(ctx, address, ref)
	require.ErrorIs(t, err, errNoFile, "two at a time")
	_, err = client.Map(ctx, address, small)
	require.ErrorIs(t, err, errNoFile)
	_, err = client.Map(ctx, address, objects.Ref{Size: 1})
	require.ErrorIs(t, err, objects.ErrNotFound)
	for _, o := range []*objects.Object{one, two} {
		whole, ok := o.Bytes()
		require.True(t, ok)
		require.True(t, bytes.Equal(want, whole))
	}
	_, err = held.Delete(ref.Hash)
	require.NoError(t, err)
	require.Greater(t, held.Stats().MemoryUsed, ref.Size, "it is in use")
	require.NoError(t, one.Close())
	require.Greater(t, held.Stats().MemoryUsed, ref.Size)
	requireObject(t, want)(two, nil)
	// The answer to another request shows that what was before it is done.
	_, err = client.Map(ctx, address, small)
	require.ErrorIs(t, err, errNoFile)
	require.Less(t, held.Stats().MemoryUsed, ref.Size)

	// Open prefers a file to a copy, and takes a copy where there is no file.
	ref = put(t, held, want)
	mine := openStore(t, objects.Options{})
	requireObject(t, want)(client.Open(ctx, mine, ref, "tcp:127.0.0.1:1", address))
	require.Zero(t, mine.Stats().Objects)
	requireObject(t, []byte("small"))(client.Open(ctx, mine, small, address))
	require.Equal(t, 1, mine.Stats().Objects)

	// A client that is closed holds nothing, and its objects stay readable.
	one, err = client.Map(ctx, address, ref)
	require.NoError(t, err)
	require.NoError(t, client.Close())
	requireObject(t, want)(one, nil)
	_, err = client.Map(ctx, address, ref)
	require.ErrorIs(t, err, objects.ErrClosed)
}

// TestHostileFiles come instead of the file of an object.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("files in memory are Linux's")
	}
	ctx := context.Background()
	content := someBytes(2 * objects.PieceSize)
	held := openStore(t, objects.Options{})
	ref := put(t, held, content)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	object, err := held.Open(ref.Hash)
	require.NoError(t, err)
	defer object.Close()
	sealed, ok := object.File()
	require.True(t, ok)
	for name, hostile := range map[string]struct {
		file *os.File
		said reply
		ref  objects.Ref
	}{
		"on disk":      {file, reply{statusOK, uint64(ref.Size)}, ref},
		"another size": {sealed, reply{statusOK, uint64(ref.Size + 1)}, objects.Ref{Hash: ref.Hash, Size: ref.Size + 1}},
		"a lie":        {sealed, reply{statusOK, 5}, ref},
		"none":         {nil, reply{statusOK, uint64(ref.Size)}, ref},
		"an error":     {sealed, reply{status: statusNotFound}, ref},
		"no reply":     {sealed, reply{}, ref},
	} {
		l := listenUnix(t)
		ended, released := make(chan struct{}), make(chan bool, 1)
		go func() {
			defer close(ended)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = welcome(c, testToken)
				var request [requestSize]byte
				_, _ = io.ReadFull(c, request[:])
				var head [replySize]byte
				hostile.said.encode(&head)
				if hostile.file == nil {
					_, _ = c.Write(head[:])
				} else {
					_ = sendFile(c.(*net.UnixConn), head[:], hostile.file)
				}
				if hostile.file == file {
					_, err = io.ReadFull(c, request[:])
					released <- err == nil && operation(request[0]) == opRelease
				}
				_ = c.Close()
			}
		}()
		client := newClient(t, Options{})
		_, err := client.Map(ctx, "unix:"+l.Addr().String(), hostile.ref)
		require.Error(t, err, name)
		if hostile.file == file {
			require.NoError(t, client.Close()) // else the connection would hold the object
			require.True(t, <-released, "what can't be mapped is not held")
		}
		require.NoError(t, l.Close())
		<-ended
	}
}

// TestCloseEndsAMap that waits for the answer of a process which gives none.
func TestCloseEndsAMap(t *testing.T) {
	t.Parallel()
	l, asked := listenUnix(t), make(chan net.Conn)
	go func() {
		if c, err := l.Accept(); err == nil {
			_ = welcome(c, testToken)
			_, _ = io.ReadFull(c, make([]byte, requestSize))
			asked <- c
		}
	}()
	client, ended := newClient(t, Options{PieceTimeout: time.Hour}), make(chan error, 1)
	go func() {
		_, err := client.Map(context.Background(), "unix:"+l.Addr().String(), objects.Ref{Size: 1})
		ended <- err
	}()
	c := <-asked
	require.NoError(t, client.Close())
	require.ErrorIs(t, <-ended, ErrUnavailable)
	require.NoError(t, c.Close())
	require.NoError(t, l.Close())
}

// TestKilledHolder kills a process whose object is mapped: the object stays until
// it is closed, nothing is left in the directory after the next start, and a fetch
// says that the source is gone.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("files in memory are Linux's")
	}
	ctx := context.Background()
	dir := socketDir(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), serveSocketDir+"="+dir)
	in, err := child.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	want := someBytes(childSize)
	ref := refOf(t, want)
	address := "unix:" + filepath.Join(dir, "child"+socketSuffix)
	client := newClient(t, Options{})
	mine := openStore(t, objects.Options{})
	mapped, err := client.Open(ctx, mine, ref, address)
	require.NoError(t, err)
	require.Zero(t, mine.Stats().Objects, "it is not a copy")
	requireObject(t, want)(client.Fetch(ctx, mine, ref, address))
	_, err = mine.Delete(ref.Hash)
	require.NoError(t, err)

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	requireObject(t, want)(mapped, nil)
	_, err = client.Open(ctx, mine, ref, address)
	require.ErrorIs(t, err, ErrUnavailable)

	l, err := ListenUnix(dir, "next")
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "disk", entries[0].Name())
	require.Equal(t, "next"+socketSuffix, entries[1].Name())
	entries, err = os.ReadDir(filepath.Join(dir, "disk"))
	require.NoError(t, err)
	require.Empty(t, entries)
	info, err := os.Stat(l.Addr().String())
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	// A sweep leaves sockets that answer.
	other, err := ListenUnix(dir, "other")
	require.NoError(t, err)
	require.FileExists(t, l.Addr().String())
	require.NoError(t, other.Close())
	require.NoError(t, l.Close())
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func refOf(t *testing.T, b []byte) objects.Ref {
	t.Helper()
	s, err := objects.Open(objects.Options{})
	require.NoError(t, err)
	defer s.Close()
	return put(t, s, b)
}

// TestSocketDirectory refuses what others could reach.
func TestSocketDirectory(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := ListenUnix(dir, "w")
	require.ErrorContains(t, err, "others may write")
	_, err = ListenUnix(filepath.Join(dir, string(make([]byte, 200))), "w")
	require.ErrorIs(t, err, ErrBadAddress)
	require.NoError(t, os.Chmod(dir, 0o700))
}
