package sharing_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// TestAStoreThatCantBeServedIsServedLater has something lie where the socket of a store is to be, as on a disk without
// room: once it can be there, other processes use the store. One line says that they can't.
func TestAStoreThatCantBeServedIsServedLater(t *testing.T) {
	t.Parallel()
	dir := place(t)
	require.NoError(t, os.Mkdir(dir, 0o700))
	socket := filepath.Join(dir, "store.sock")
	require.NoError(t, os.WriteFile(socket, nil, 0o600))
	said, served := make(chan struct{}), make(chan struct{})
	log := slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		switch {
		case strings.Contains(line, "other processes can't use the store"):
			close(said)
		case strings.Contains(line, "other processes can use the store now"):
			close(served)
		}
	}), nil))
	owner := open(t, dir, sharing.Options{Logger: log})
	<-said
	require.Empty(t, owner.Socket())
	put(t, owner, "a")
	require.NoError(t, os.Remove(socket))
	second := open(t, dir, sharing.Options{Wait: patience})
	put(t, second, "b")
	require.False(t, second.IsOwner())
	<-served
	require.Equal(t, socket, owner.Socket())
}

// TestAStoreThatIsServedNowhereLeavesNoPlace has the path of a store be too long for its socket, and other places too.
func TestAStoreThatIsServedNowhereLeavesNoPlace(t *testing.T) {
	temporary := filepath.Join(t.TempDir(), strings.Repeat("t", 100))
	require.NoError(t, os.Mkdir(temporary, 0o700))
	t.Setenv("TMPDIR", temporary)
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	owner, err := sharing.Open(t.Context(), dir, sharing.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	put(t, owner, "a")
	require.NoError(t, owner.Close())
	require.Contains(t, log.String(), "other processes can't use the store")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestARecordThatIsBeingWrittenHoldsNothingUp has the line about a record that can't be written take long, as the
// record itself would on a disk that hangs.
func TestARecordThatIsBeingWrittenHoldsNothingUp(t *testing.T) {
	t.Parallel()
	dir := place(t)
	said, goOn := make(chan struct{}), make(chan struct{})
	saidOnce := sync.OnceFunc(func() { close(said) })
	log := slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "can't be written") {
			saidOnce()
			<-goOn
		}
	}), nil))
	owner := open(t, dir, sharing.Options{Logger: log})
	second := open(t, dir, sharing.Options{Wait: patience})
	require.False(t, second.IsOwner())
	record := filepath.Join(dir, "sharing.json")
	require.Eventually(t, func() bool { // the owner may be about to write that the second has come
		_ = os.Remove(record)
		return os.MkdirAll(filepath.Join(record, "in the way"), 0o700) == nil
	}, patience, time.Millisecond)
	require.NoError(t, second.Close()) // the owner forgets it
	<-said
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		owner.Traits()
		owner.Socket()
	}()
	select {
	case <-answered:
	case <-time.After(patience):
		t.Error("the owner's traits wait for the disk")
	}
	close(goOn)
	<-answered
}
