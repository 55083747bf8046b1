package futures_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/futures"
)

// TestExplainSaysWhyAnObjectCannotBeRead removes the socket of the only worker that has
// a value, and then the worker: the value, and what takes it, say what can be done.
func TestExplainSaysWhyAnObjectCannotBeRead(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	stop := o.start(64 << 20)
	f := o.put(patternOf(3<<20), futures.PutOptions{})
	members, err := o.client.Cluster().Workers(o.ctx)
	require.NoError(t, err)
	require.Len(t, members, 1)
	holder := members[0].ID
	e, err := o.client.Explain(o.ctx, f.ID())
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonRealized, e.Reason)
	require.Equal(t, []futures.WorkerID{holder}, e.Holders)
	require.Contains(t, e.Text, "an object of 3145728 bytes, held by worker "+string(holder))

	socket := strings.TrimPrefix(strings.Fields(members[0].Objects)[0], "unix:")
	require.NoError(t, os.Remove(socket))
	other, err := futures.New(o.ctx, o.client.Cluster().Database(), futures.Options{}) // has no connections yet
	require.NoError(t, err)
	e, err = other.Explain(o.ctx, f.ID())
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonUnreachable, e.Reason)
	require.Contains(t, e.Text, "It can't be read from here: worker "+string(holder)+": ")
	require.Contains(t, e.Text, "--object-listen")
	require.NotContains(t, e.Text, filepath.Dir(socket))

	require.NoError(t, other.Close(o.ctx))
	stop()
	e, err = o.client.Explain(o.ctx, f.ID())
	require.NoError(t, err)
	require.Contains(t, e.Text, "no worker that is alive has it: it is lost")
	o.start(64 << 20)
	users := []futures.ID{f.ID()}
	for range 2 {
		user, err := o.client.Submit(o.ctx, futures.Task{
			Function: "go:length", Codec: futures.CodecInputs, After: users[len(users)-1:],
		})
		require.NoError(t, err)
		users = append(users, user.ID())
	}
	for _, id := range users[1:] {
		_, err = o.client.Future(id).Await(o.ctx)
		require.ErrorIs(t, err, futures.ErrFailed)
		e, err = o.client.Explain(o.ctx, id)
		require.NoError(t, err)
		require.NotContains(t, e.Text, "Retry it by hand")
		require.Contains(t, e.Text, "input "+f.ID().String()+" was put, and its value is lost: a retry would fail again")
	}
}
