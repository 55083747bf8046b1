package system

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// badInput is something that can't work. Exactly one of refused, kind and
// reason says how that shows: at submit, as a failure, or in an explanation of
// why it waits.
type badInput struct {
	name    string
	task    futures.Task
	refused error
	kind    layout.FailureKind
	reason  inspect.Reason
	says    []string // the thing, the limit, the way out
}

const maxOutput = 1 << 20

func badInputs(p *plant) []badInput {
	module := func(m []byte) futures.Task { return futures.Task{Function: p.put(m)} }
	endless := module(looping())
	endless.Timeout = 300 * time.Millisecond
	hungry := module(growing())
	hungry.Requirements.RAM = 8 << 20
	return []badInput{
		{
			name: "oversize arguments", task: futures.Task{Function: "go:echo", Args: make([]byte, layout.MaxPut+1)},
			refused: fdbmodel.ErrTooLarge, says: []string{"67108865 bytes", "at most 67108864", "store the data elsewhere"},
		},
		{
			name: "oversize environment", task: futures.Task{Function: "go:echo", Argv: []string{strings.Repeat("a", 40_000)}},
			refused: fdbmodel.ErrTooLarge, says: []string{"argv", "at most 32768", "as arguments"},
		},
		{
			name: "oversize result", task: futures.Task{Function: "go:huge"},
			kind: layout.KindTooLarge, says: []string{"67108865 bytes", "at most 67108864", "store the data elsewhere"},
		},
		{
			name: "unknown function", task: futures.Task{Function: "go:nobody"},
			reason: inspect.ReasonNoFunction, says: []string{"go:nobody", `queue "default"`, "Register it"},
		},
		{
			name: "unknown queue", task: futures.Task{Function: "go:echo", Queue: "elsewhere"},
			reason: inspect.ReasonNoQueue, says: []string{`"elsewhere"`, "Start one that does"},
		},
		{
			name: "unknown module", task: futures.Task{Function: "wasm:missing"},
			refused: fdbmodel.ErrNotFound, says: []string{"wasm:missing", "store one first"},
		},
		{
			name: "no function name at all", task: futures.Task{Function: "echo"},
			refused: layout.ErrBadName, says: []string{`"echo"`, "go:NAME"},
		},
		{
			name: "module that is none", task: module([]byte("#!/bin/sh\n")),
			kind: layout.KindUnloadable, says: []string{"is not a WebAssembly module"},
		},
		{
			name: "module that imports what it may not", task: module(importing("env", "abort")),
			kind: layout.KindUnloadable, says: []string{`"abort"`, `"env"`, `may import only from "wasi_snapshot_preview1"`},
		},
		{
			name: "module without such a method", task: futures.Task{Function: p.put(looping()) + "/other"},
			kind: layout.KindUnloadable, says: []string{`no function "other"`, "_start"},
		},
		{
			name: "module that never ends", task: endless,
			kind: layout.KindTimeout, says: []string{"limit of 300ms", "raise"},
		},
		{
			name: "module that eats memory", task: hungry,
			kind: layout.KindMemory, says: []string{"limit of 8388608 bytes", "raise"},
		},
		{
			name: "module that floods its output", task: module(flooding()),
			kind: layout.KindTooLarge, says: []string{"more than 1048576 bytes to its standard output", "write less"},
		},
		{
			name:   "more cores than anybody has",
			task:   futures.Task{Function: "go:echo", Requirements: layout.Requirements{CPU: 1_000_000}},
			reason: inspect.ReasonInfeasible, says: []string{"1000000 millicores", "Start a larger one"},
		},
		{
			name:   "a GPU that no worker has",
			task:   futures.Task{Function: "go:echo", Requirements: layout.Requirements{GPU: 1000}},
			reason: inspect.ReasonInfeasible, says: []string{"1000 milli-GPUs", "Start a larger one"},
		},
		{
			name: "id used twice", task: futures.Task{Function: "go:echo", Key: "key", Args: []byte("other")},
			refused: fdbmodel.ErrIDInUse, says: []string{`the key "key"`, "use another key"},
		},
		{
			name:    "negative requirement",
			task:    futures.Task{Function: "go:echo", Requirements: layout.Requirements{CPU: -1}},
			refused: layout.ErrBadSpec, says: []string{"cpu -1", "none may be negative"},
		},
	}
}

// TestBadInput asks for what can't work, each between things that can: the error
// is clear, what works goes on, and nothing is broken.
func TestBadInput(t *testing.T) {
	t.Parallel()
	p := newPlant(t, "memory:")
	p.start(workers.Options{Slots: 2, CPU: 2000, Modules: p.modules(wasm.Config{PoolSize: 2, MaxOutput: maxOutput})},
		map[string]workers.Function{
			"echo": echo,
			"huge": func(context.Context, []byte) ([]byte, error) { return make([]byte, layout.MaxPut+1), nil },
		})
	first, err := p.client.Submit(p.ctx, futures.Task{Function: "go:echo", Key: "key", Args: []byte("first")})
	require.NoError(t, err)
	for _, c := range badInputs(p) {
		t.Run(c.name, func(t *testing.T) {
			beside, err := p.client.Submit(p.ctx, futures.Task{Function: "go:echo", Args: []byte(c.name)})
			require.NoError(t, err)
			text := p.tryBad(t, &c)
			for _, says := range c.says {
				require.Contains(t, text, says)
			}
			r, err := beside.Await(p.ctx)
			require.NoError(t, err)
			require.Equal(t, c.name, string(r.Value))
			p.check()
		})
	}
	r, err := first.Await(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "first", string(r.Value))
	// What waits is not lost: it can be cancelled, or served by another worker.
	p.start(workers.Options{Queues: []string{"default", "elsewhere"}, CPU: 1_000_000, GPU: 1000},
		map[string]workers.Function{"echo": echo, "nobody": echo})
	p.awaitNoneOpen()
	require.Empty(t, p.check().Notes)
}

// tryBad returns what is said about the input.
func (p *plant) tryBad(t *testing.T, c *badInput) string {
	c.task.MaxRetries = new(int)
	f, err := p.client.Submit(p.ctx, c.task)
	if c.refused != nil {
		require.ErrorIs(t, err, c.refused)
		return err.Error()
	}
	require.NoError(t, err)
	if c.reason != "" {
		e, err := p.client.Explain(p.ctx, f.ID())
		require.NoError(t, err)
		require.Equal(t, c.reason, e.Reason)
		return e.Text
	}
	_, err = f.Await(p.ctx)
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, c.kind, failed.Kind, "%v", err)
	require.Contains(t, err.Error(), f.ID().String())
	row, err := p.client.Cluster().Get(p.ctx, f.ID())
	require.NoError(t, err)
	require.Equal(t, layout.Failed, row.State())
	return failed.Error()
}

// TestRecordFromANewerVersion plants a spec, and then a state, that a newer
// version wrote: the others run, those are named by a check, and run once they
// can be read.
func TestRecordFromANewerVersion(t *testing.T) {
	t.Parallel()
	for part, value := range map[string][]byte{"spec": {99}, "attempts": {99, 1, 2}} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, "memory:")
			all, err := p.client.SubmitMany(p.ctx, []futures.Task{
				{Function: "go:echo", Args: []byte("0")}, {Function: "go:echo", Args: []byte("1")},
				{Function: "go:echo", Args: []byte("2")},
			})
			require.NoError(t, err)
			planted := all[1]
			key := p.specKey(planted.ID())
			if part == "attempts" {
				at := bytes.LastIndex(key, []byte("\x02spec\x00"))
				key = append(key[:at:at], "\x02state\x00\x02attempts\x00"...)
			}
			before := p.write(key, value)
			p.start(workers.Options{}, map[string]workers.Function{"echo": echo})
			for _, f := range []*futures.Future{all[0], all[2]} {
				_, err := f.Await(p.ctx)
				require.NoError(t, err)
			}
			_, err = p.client.Cluster().Get(p.ctx, planted.ID())
			require.ErrorIs(t, err, layout.ErrNewerRecord)
			require.ErrorContains(t, err, "version 99, this process reads 1")
			require.ErrorContains(t, err, "upgrade this process")
			// An await of its end says so, and still returns the ends that can be read.
			other := plantOn(t, p.db, "plant").client
			results, err := other.AwaitAll(p.ctx, []*futures.Future{
				other.Future(all[0].ID()), other.Future(planted.ID()), other.Future(all[2].ID()),
			})
			require.ErrorIs(t, err, layout.ErrNewerRecord)
			require.Equal(t, "0", string(results[0].Value))
			require.Equal(t, "2", string(results[2].Value))
			report := p.check()
			require.EqualValues(t, 1, report.Newer)
			require.Contains(t, report.Notes[0].Text, "version 99")

			p.write(key, before)
			p.start(workers.Options{}, map[string]workers.Function{"echo": echo})
			_, err = p.client.Future(planted.ID()).Await(p.ctx)
			require.NoError(t, err)
			require.Zero(t, p.check().Newer)
		})
	}
}

// specKey finds the key of a future's spec among all keys.
func (p *plant) specKey(id futures.ID) []byte {
	tx := p.db.Begin(kv.Options{})
	defer tx.Cancel()
	for r := (kv.Range{End: []byte{0xff}}); ; {
		page, err := tx.GetRange(r, kv.RangeOptions{}).Wait(p.ctx)
		require.NoError(p.t, err)
		for _, item := range page.Items {
			if bytes.Contains(item.Key, id[:]) && bytes.HasSuffix(item.Key, []byte("\x02spec\x00")) {
				return item.Key
			}
		}
		require.True(p.t, page.More, "no spec of %s", id)
		r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
}

// write sets a key, or clears it for nil, and returns what it had.
func (p *plant) write(key, value []byte) (before []byte) {
	tx := p.db.Begin(kv.Options{})
	before, err := tx.Get(key).Wait(p.ctx)
	require.NoError(p.t, err)
	if value == nil {
		tx.Clear(key)
	} else {
		tx.Set(key, value)
	}
	_, err = tx.Commit(p.ctx)
	require.NoError(p.t, err)
	return before
}

// Small modules with one function, "_start", and one page of memory. body is
// WebAssembly code.

func assemble(importModule, importName string, body ...byte) []byte {
	text := func(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }
	section := func(id byte, parts ...[]byte) []byte {
		content := bytes.Join(parts, nil)
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	body = append(append([]byte{0}, body...), 0x0b)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}), // types: () and fd_write's
		section(2, []byte{1}, text(importModule), text(importName), []byte{0, 1}),
		section(3, []byte{1, 0}),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, text("memory"), []byte{2, 0}, text("_start"), []byte{0, 1}),
		section(10, []byte{1}, binary.AppendUvarint(nil, uint64(len(body))), body),
	}, nil)
}

func importing(module, name string) []byte { return assemble(module, name) }

// looping branches to itself for ever.
func looping() []byte {
	return assemble("wasi_snapshot_preview1", "fd_write", 0x03, 0x40, 0x0c, 0, 0x0b)
}

// growing takes memory by 16 pages until it is refused, and traps then.
func growing() []byte {
	return assemble("wasi_snapshot_preview1", "fd_write",
		0x03, 0x40, 0x41, 16, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x00)
}

// flooding writes the first 32 KiB of its memory to standard output for ever.
func flooding() []byte {
	return assemble("wasi_snapshot_preview1", "fd_write",
		0x41, 4, 0x41, 0x80, 0x80, 2, 0x36, 2, 0, // the vector at 0 has 32,768 bytes from 0
		0x03, 0x40, 0x41, 1, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a, 0x0c, 0, 0x0b)
}
