package sharing_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// TestAFailedOwnerLeavesTheStore has the disk fail an owner that does not end: another process takes over,
// and hears that the first one is lost.
func TestAFailedOwnerLeavesTheStore(t *testing.T) {
	t.Parallel()
	dir := place(t)
	var fails errorfs.Toggle
	fails.Injector = errorfs.ErrInjected.If(errorfs.Writes)
	first, err := sharing.Open(t.Context(), dir,
		sharing.Options{Embedded: embedded.Options{FS: errorfs.Wrap(vfs.Default, &fails)}})
	require.NoError(t, err)
	name := first.Traits().Connection
	second := open(t, dir, sharing.Options{})
	heard := hearing(second)
	put(t, second, "a")
	fails.On()
	put(t, second, "b")
	// It may have reached the store by the socket at which it serves that already.
	require.Eventually(t, second.IsOwner, patience, time.Millisecond)
	hears(t, heard, name)
	<-first.Failed()
	_, err = first.Begin(kv.Options{}).Get([]byte("a")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrStoreFailed)
	require.ErrorIs(t, first.Close(), kv.ErrStoreFailed)
}
