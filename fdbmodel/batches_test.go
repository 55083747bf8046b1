package fdbmodel_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/owners"
)

func TestBatchesAreListedInTheirOrder(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	for i := range 7 {
		b := &layout.BatchRecord{ID: fmt.Sprint("b", i), Template: []byte("{}"), CreatedAt: int64(100 - i)}
		require.NoError(t, batches.Of(a.c).Create(a.ctx, b))
		require.ErrorIs(t, batches.Of(a.c).Create(a.ctx, b), fdbmodel.ErrIDInUse)
	}
	var got []string
	after := ""
	for {
		page, err := batches.Of(a.c).List(a.ctx, after, 3)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for i := range page {
			got = append(got, page[i].ID)
		}
		after = page[len(page)-1].ID
	}
	require.Equal(t, []string{"b6", "b5", "b4", "b3", "b2", "b1", "b0"}, got)
	_, err := batches.Of(a.c).List(a.ctx, "none", 3)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	b, err := batches.Of(a.c).Update(a.ctx, "b3", func(b *layout.BatchRecord) (bool, error) {
		b.Status = 1
		return true, nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, b.Status)
	require.NoError(t, batches.Of(a.c).Drop(a.ctx, "b3"))
	_, err = batches.Of(a.c).Get(a.ctx, "b3")
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	a.check()
}

// TestABatchThatWasCutOffIsTakenOver lets a second maker of the same batch
// continue.
func TestABatchThatWasCutOffIsTakenOver(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	made := func(maker, digest string, at int64) *layout.BatchRecord {
		return &layout.BatchRecord{ID: "b", Template: []byte("{}"), Maker: maker, Digest: []byte(digest), CreatedAt: at}
	}
	require.NoError(t, batches.Of(a.c).Create(a.ctx, made("first", "same", 1)))
	require.ErrorIs(t, batches.Of(a.c).Create(a.ctx, made("other", "another", 2)), fdbmodel.ErrIDInUse)
	require.ErrorIs(t, batches.Of(a.c).Create(a.ctx, made("other", "", 2)), fdbmodel.ErrIDInUse)
	require.NoError(t, batches.Of(a.c).Create(a.ctx, made("second", "same", 3)))
	require.ErrorIs(t, batches.Of(a.c).Finish(a.ctx, "b", "first"), fdbmodel.ErrIDInUse)
	require.NoError(t, batches.Of(a.c).Finish(a.ctx, "b", "second"))
	require.NoError(t, batches.Of(a.c).Finish(a.ctx, "b", "second"))
	require.ErrorIs(t, batches.Of(a.c).Create(a.ctx, made("third", "same", 4)), fdbmodel.ErrIDInUse)
	page, err := batches.Of(a.c).List(a.ctx, "", 10)
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.EqualValues(t, 3, page[0].CreatedAt)
	require.ErrorIs(t, batches.Of(a.c).Finish(a.ctx, "none", "first"), fdbmodel.ErrNotFound)
	a.check()
}

func TestAChunkGrows(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	w := a.register()
	require.NoError(t, batches.Of(a.c).Create(a.ctx, &layout.BatchRecord{ID: "g", Template: []byte("{}")}))
	ids := a.submit(5, true)
	one := layout.BatchChunk{Worker: w.ID(), ID: "one", Items: 4, Status: 1}
	there, added, err := batches.Of(a.c).AssignChunk(a.ctx, "g", one, ids[:2], modeltest.AnyBatch)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true}, there)
	require.Equal(t, 2, added)
	there, added, err = batches.Of(a.c).AssignChunk(a.ctx, "g", one, ids[1:4], modeltest.AnyBatch)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, true}, there)
	require.Equal(t, 2, added)
	took := a.claim(w, 1)
	two := layout.BatchChunk{Worker: w.ID(), ID: "two", Items: 1}
	there, _, err = batches.Of(a.c).AssignChunk(a.ctx, "g", two, ids, modeltest.AnyBatch)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false, false, false, true}, there, "the others are another chunk's")
	there, _, err = batches.Of(a.c).AssignChunk(a.ctx, "g", one, []layout.ID{took[0].ID}, modeltest.AnyBatch)
	require.NoError(t, err)
	require.Equal(t, []bool{true}, there, "it runs")
	open, err := owners.Of(a.c).Open(a.ctx, "g")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"one": 4, "two": 1}, open)
	zero := time.Duration(0)
	a.finish(w, fdbmodel.Completion{Future: &took[0], Exception: &layout.Exception{Kind: layout.KindError},
		RetryIn: &zero})
	open, err = owners.Of(a.c).Open(a.ctx, "g")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"one": 3, "two": 1}, open)
	again, _, err := owners.Of(a.c).Retries(a.ctx, "g", a.c.Now())
	require.NoError(t, err)
	require.Equal(t, 1, again)
	chunks, err := batches.Of(a.c).Chunks(a.ctx, "g")
	require.NoError(t, err)
	require.Equal(t, []layout.BatchChunk{{ID: "one", Worker: w.ID(), Items: 4, Status: 1},
		{ID: "two", Worker: w.ID(), Items: 1}},
		chunks)
	chunk, err := batches.Of(a.c).UpdateChunk(a.ctx, "g", "two",
		func(c *layout.BatchChunk) (bool, error) { c.Status = 5; return true, nil })
	require.NoError(t, err)
	require.Equal(t, 5, chunk.Status)
	_, err = batches.Of(a.c).UpdateChunk(a.ctx, "g", "none", nil)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	_, _, err = batches.Of(a.c).AssignChunk(a.ctx, "g", one, ids, func(*layout.BatchRecord) bool { return false })
	require.ErrorIs(t, err, fdbmodel.ErrTransition)
	_, _, err = batches.Of(a.c).AssignChunk(a.ctx, "none", one, ids, modeltest.AnyBatch)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	a.check()
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	w := a.register()
	ids := a.submit(250, true)
	a.assign(w, ids[:3])
	took := a.claim(w, 2)
	outcomes, err := a.c.CancelMany(a.ctx, append(ids, layout.ID{9}), "no more")
	require.NoError(t, err)
	for i, o := range outcomes[:250] {
		want := fdbmodel.Applied
		if ids[i] == took[0].ID || ids[i] == took[1].ID {
			want = fdbmodel.Requested
		}
		require.Equal(t, want, o)
	}
	require.Equal(t, fdbmodel.Refused, outcomes[250])
	cancelled, err := w.Heartbeat(a.ctx, layout.Heartbeat{Free: layout.Resources{Slots: 1}, Running: 2})
	require.NoError(t, err)
	require.Len(t, cancelled, 2, "their worker is told")
	a.finish(w, fdbmodel.Completion{Future: &took[0], Relinquish: true},
		fdbmodel.Completion{Future: &took[1], Result: &layout.Result{}})
	outcomes, err = a.c.RetryMany(a.ctx, ids)
	require.NoError(t, err)
	again := 0
	for _, o := range outcomes {
		if o == fdbmodel.Applied {
			again++
		}
	}
	require.Equal(t, 249, again)
	require.Len(t, a.held(), 249)
	_, err = a.c.CancelMany(a.ctx, ids[:100], "")
	require.NoError(t, err)
	removed, err := a.c.DiscardMany(a.ctx, slices.Concat(ids[:10], ids))
	require.NoError(t, err)
	require.GreaterOrEqual(t, removed, 100)
	require.LessOrEqual(t, removed, len(ids))
	a.check()
}

// TestHeldFuturesOutliveTheRetention checks that held futures stay until their
// owner discards them.
func TestHeldFuturesOutliveTheRetention(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" })
	_, _, err := s.C.Cancel(s.Ctx, id, "")
	require.NoError(t, err)
	s.Clock.Advance(1000 * s.C.Config().Retention)
	removed, next, err := maintenance.Of(s.C).ExpireDone(s.Ctx)
	require.NoError(t, err)
	require.Zero(t, removed)
	require.Zero(t, next)
	require.Equal(t, layout.Failed, s.State(id))
	modeltest.RequireSound(t, s.C)
}

func TestBatchUnderUnknownCommits(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		s := modeltest.NewStage(t)
		s.Faults.FailNext(fault, nil)
		require.NoError(t, batches.Of(s.C).Create(s.Ctx, &layout.BatchRecord{ID: "g", Template: []byte("{}")}))
		s.Faults.Flush()
		id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" })
		s.Faults.FailNext(fault, nil)
		chunk := layout.BatchChunk{Worker: s.Worker.ID(), ID: "c"}
		there, _, err := batches.Of(s.C).AssignChunk(s.Ctx, "g", chunk, []layout.ID{id}, modeltest.AnyBatch)
		require.NoError(t, err)
		s.Faults.Flush()
		require.Equal(t, []bool{true}, there)
		chunks, err := batches.Of(s.C).Chunks(s.Ctx, "g")
		require.NoError(t, err)
		require.Equal(t, []layout.BatchChunk{chunk}, chunks)
	}
}

// TestRetryUnderUnknownCommits counts an item that starts over once, and ends the batch after it.
func TestRetryUnderUnknownCommits(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		s := modeltest.NewStage(t)
		all := batches.Of(s.C)
		require.NoError(t, all.Create(s.Ctx, &layout.BatchRecord{
			ID: "g", Template: []byte("{}"), Queue: layout.DefaultQueue, Items: 1,
		}))
		id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" })
		_, err := s.C.CancelMany(s.Ctx, []layout.ID{id}, "enough")
		require.NoError(t, err)
		end := func(b *layout.BatchRecord) (bool, error) {
			write := b.FinishedAt == 0
			b.FinishedAt = 7
			return write, nil
		}
		open := func(b *layout.BatchRecord) error { b.FinishedAt = 0; return nil }
		strike := func() { s.Faults.FailNext(fault, nil) }
		strike()
		b, err := all.End(s.Ctx, "g", end)
		require.NoError(t, err)
		s.Faults.Flush()
		require.EqualValues(t, 7, b.FinishedAt)
		strike()
		n, err := all.Retry(s.Ctx, "g", []layout.ID{id}, open)
		require.NoError(t, err)
		s.Faults.Flush()
		require.Equal(t, 1, n)
		require.Equal(t, 2, int(s.Faults.Counts().Injected[fault]), "the faults did not happen")
		b, err = all.End(s.Ctx, "g", end)
		require.NoError(t, err)
		require.Zero(t, b.FinishedAt, "an item waits")
		failed := errors.New("not now")
		_, err = s.C.CancelMany(s.Ctx, []layout.ID{id}, "enough")
		require.NoError(t, err)
		n, err = all.Retry(s.Ctx, "g", []layout.ID{id}, func(*layout.BatchRecord) error { return failed })
		require.ErrorIs(t, err, failed)
		require.Zero(t, n)
	}
}

func TestMakersUnderUnknownCommits(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		s := modeltest.NewStage(t)
		made := func(maker string, at int64) *layout.BatchRecord {
			return &layout.BatchRecord{ID: "g", Template: []byte("{}"), Maker: maker, Digest: []byte("same"), CreatedAt: at}
		}
		for at, maker := range []string{"first", "second"} {
			s.Faults.FailNext(fault, nil)
			require.NoError(t, batches.Of(s.C).Create(s.Ctx, made(maker, int64(at))))
			s.Faults.Flush()
		}
		s.Faults.FailNext(fault, nil)
		require.NoError(t, batches.Of(s.C).Finish(s.Ctx, "g", "second"))
		s.Faults.Flush()
		require.Equal(t, 3, int(s.Faults.Counts().Injected[fault]), "the fault did not happen")
		require.ErrorIs(t, batches.Of(s.C).Finish(s.Ctx, "g", "first"), fdbmodel.ErrIDInUse)
		b, err := batches.Of(s.C).Get(s.Ctx, "g")
		require.NoError(t, err)
		require.True(t, b.Made)
		require.Equal(t, "second", b.Maker)
		modeltest.RequireSound(t, s.C)
	}
}

func TestAMethodThatNamesAFile(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	one, err := modules.Of(a.c).Put(a.ctx, []byte("one"), "set/one.wasm")
	require.NoError(t, err)
	two, err := modules.Of(a.c).Put(a.ctx, []byte("two"), "single")
	require.NoError(t, err)
	_, err = modules.Of(a.c).Put(a.ctx, []byte("one"), "set/other")
	require.NoError(t, err)
	for name, want := range map[string]string{
		"wasm:set/one.wasm": "wasm:" + one.CID, "wasm:set/other": "wasm:" + one.CID,
		"wasm:single/any.wasm":        "wasm:" + two.CID,
		"wasm:" + two.CID + "/x.wasm": "wasm:" + two.CID, "wasm:single/run": "wasm:" + two.CID + "/run",
	} {
		got, err := a.c.ResolveFunction(a.ctx, name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"wasm:set", "wasm:set/two.wasm", "wasm:none/x.wasm"} {
		_, err := a.c.ResolveFunction(a.ctx, name)
		require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	}
}
