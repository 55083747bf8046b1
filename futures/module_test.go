package futures_test

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// copier is a runner of modules that copies standard input to standard output, and
// fails if a module is named so. It has at most inMemory bytes in memory.
type copier struct {
	streamed atomic.Int64 // bytes
	fails    atomic.Bool
}

const inMemory = 64 << 10

// RunModule implements workers.ModuleRunner.
func (m *copier) RunModule(ctx context.Context, call workers.ModuleCall) (out workers.ModuleOutcome, err error) {
	if _, err := call.Load(ctx); err != nil {
		return out, err
	}
	input := io.Reader(bytes.NewReader(call.Stdin))
	if call.Input != nil {
		input = call.Input(ctx)
	}
	if call.Output == nil {
		out.Stdout, err = io.ReadAll(input)
		return out, err
	}
	buffer := make([]byte, inMemory)
	for {
		n, err := io.ReadFull(input, buffer)
		if n == len(buffer) || m.streamed.Load() > 0 {
			written, err := call.Output.Write(buffer[:n])
			m.streamed.Add(int64(written))
			if err != nil {
				return out, err
			}
		} else {
			out.Stdout = buffer[:n]
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		} else if err != nil {
			return out, err
		}
	}
	if m.fails.Load() {
		out.Kind, out.Message, out.Stdout = layout.KindExit, "no luck", buffer[:1]
	}
	return out, nil
}

// copyOf submits a module that copies the results of futures.
func (o *objectTeam) copyOf(asObject bool, inputs ...*futures.Future) *futures.Future {
	info, err := modules.Of(o.client.Cluster()).Put(o.ctx, []byte("copy"), "copy")
	require.NoError(o.t, err)
	task := futures.Task{Function: "wasm:" + info.CID, Codec: futures.CodecInputs, AsObject: asObject}
	task.MaxRetries = new(int)
	for _, f := range inputs {
		task.After = append(task.After, f.ID())
	}
	f, err := o.client.Submit(o.ctx, task)
	require.NoError(o.t, err)
	return f
}

// TestModulesStream has modules read inputs from wherever they are, and write results as
// objects and to the store of the cluster.
func TestModulesStream(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	runner := &copier{}
	o.modules = runner
	o.start(100 << 20)
	parts := [][]byte{patternOf(5<<20 + 1), nil, []byte("small"), patternOf(3 << 20), patternOf(8 << 10)}
	inputs := []*futures.Future{
		o.put(parts[0], futures.PutOptions{AsObject: true}), o.put(nil, futures.PutOptions{}),
		o.put(parts[2], futures.PutOptions{}), o.put(parts[3], futures.PutOptions{Stored: true}),
		o.put(parts[4], futures.PutOptions{}),
	}
	want := bytes.Join(parts, nil)
	f := o.copyOf(true, inputs...)
	o.requireValue(f, want)
	require.True(t, o.isObject(f))
	require.Equal(t, int64(len(want)), runner.streamed.Load())
	runner.streamed.Store(0)
	f = o.copyOf(false, inputs...)
	o.requireValue(f, want)
	require.False(t, o.isObject(f))
	require.Equal(t, int64(len(want)), runner.streamed.Load(), "the cluster's store takes pieces too")
	runner.streamed.Store(0)
	f = o.copyOf(true, inputs[2])
	o.requireValue(f, parts[2])
	require.Zero(t, runner.streamed.Load())

	runner.fails.Store(true)
	f = o.copyOf(true, inputs[0])
	_, err := f.Await(o.ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindExit, failed.Kind)
	o.requireSound()
}

// TestModulesWaitForLostInputs has a module begin to read an input whose worker is gone:
// that is made again, and the module runs again.
func TestModulesWaitForLostInputs(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	o.modules = &copier{}
	stop := o.start(100 << 20)
	lost, err := fill.Submit(o.ctx, o.client, 3<<20)
	require.NoError(t, err)
	<-lost.Done()
	stop()
	o.start(100 << 20)
	f := o.copyOf(true, o.put([]byte("small"), futures.PutOptions{}), lost.Future)
	result, err := f.Await(o.ctx)
	require.NoError(t, err)
	value, err := lost.Await(o.ctx)
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(result.Value, value) && bytes.HasPrefix(result.Value, []byte("small")))
	require.Equal(t, int64(2), o.runs.Load())
	o.requireSound()
}

// TestModulesWithoutRoom write more than an object store of their worker has room for: it
// goes to the cluster, from memory.
func TestModulesWithoutRoom(t *testing.T) {
	t.Parallel()
	o := newObjectTeam(t)
	runner := &copier{}
	o.modules = runner
	o.start(1 << 20)
	want := patternOf(2 << 20)
	f := o.copyOf(true, o.put(want, futures.PutOptions{Stored: true}))
	o.requireValue(f, want)
	require.False(t, o.isObject(f))
	require.Zero(t, runner.streamed.Load())
}
