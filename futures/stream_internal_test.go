package futures

import (
	"context"
	"io/fs"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/bubble"
)

// TestStreamIsClosedWhileItIsRead closes a stream whose reader waits for what is fetched ahead: neither waits for ever.
func TestStreamIsClosedWhileItIsRead(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		result := &layout.Result{Value: []byte("value")}
		ahead := make(chan window, 1)
		s := &Stream{result: result, reader: new(results.Results).Open(layout.ID{}, result), ahead: ahead}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = s.Read(make([]byte, 1)) // the value or an error
		}()
		synctest.Wait()
		go func() {
			<-s.ctx.Done()
			ahead <- window{err: s.ctx.Err()}
		}()
		require.NoError(t, s.Close())
		<-read
		_, err := s.Read(make([]byte, 1))
		require.ErrorIs(t, err, fs.ErrClosed)
	})
}
