package peerhead_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestModulesAreSentInPieces has two peers take a module over a slow link. That is shown,
// and the attempt for which it is waits longer than its timeout.
func TestModulesAreSentInPieces(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		ctx := context.Background()
		module := bytes.Repeat([]byte("\x00asm and so on. "), 2<<16)
		info, err := modules.Of(w.cluster).Put(ctx, module, "")
		require.NoError(w, err)
		_, _, err = w.head.OpenModule(ctx, "stranger", info.CID)
		require.ErrorIs(w, err, fs.ErrNotExist)
		p := w.join("p", 1, func(p *fakePeer) { p.takes = 10 * time.Minute })
		_, _, err = w.head.OpenModule(ctx, p.id, "unknown")
		require.ErrorIs(w, err, fs.ErrNotExist)
		subs := []fdbmodel.Submission{{Spec: layout.Spec{Function: "wasm:" + info.CID, Codec: layout.CodecArgv,
			Timeout: time.Second}}}
		made, err := w.cluster.Submit(ctx, subs)
		require.NoError(w, err)
		w.settle(time.Second)

		r, size, err := w.head.OpenModule(ctx, p.id, info.CID)
		require.NoError(w, err)
		require.EqualValues(w, len(module), size)
		half := make([]byte, size/2)
		_, err = io.ReadFull(r, half)
		require.NoError(w, err)
		moving := w.head.Peers()[0].Transfers
		require.Len(w, moving, 1)
		require.Equal(w, peerhead.Transfer{What: "module", Name: info.CID, Done: size / 2, Total: size,
			Since: moving[0].Since}, moving[0])
		w.settle(5 * time.Minute)
		require.Equal(w, layout.Claimed, w.stateOf(made[0].ID))
		rest, err := io.ReadAll(r)
		require.NoError(w, err)
		require.True(w, bytes.Equal(module, append(half, rest...)))
		require.NoError(w, r.Close())
		require.Empty(w, w.head.Peers()[0].Transfers)

		q := w.join("q", 1)
		r, _, err = w.head.OpenModule(ctx, q.id, info.CID)
		require.NoError(w, err)
		_, err = r.Seek(100, io.SeekStart)
		require.NoError(w, err)
		rest, err = io.ReadAll(r)
		require.NoError(w, err)
		require.True(w, bytes.Equal(module[100:], rest))
		require.NoError(w, r.Close())
		w.settle(10 * time.Minute)
	})
}

func (w *world) stateOf(id layout.ID) layout.State {
	row := w.rows([]layout.ID{id})[0]
	return row.State()
}
