package forks_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// failed returns a future that has failed for good behind steps with these names, whose values are the
// names too.
func failed(s *modeltest.Stage, change func(*fdbmodel.Submission), names ...string) layout.ID {
	s.T.Helper()
	id := s.Submit(change)
	f := s.Claim(s.Worker)[0]
	require.Equal(s.T, id, f.ID)
	record(s, &f, names...)
	end(s, &f, &layout.Exception{Kind: layout.KindError, Message: "no parcel"})
	return id
}

func plain(*fdbmodel.Submission) {}

// record records steps that have returned their names.
func record(s *modeltest.Stage, f *fdbmodel.ClaimedFuture, names ...string) {
	recordAll(s, f, "", names...)
}

// recordAll records steps that have returned a value, or their names if that is empty.
func recordAll(s *modeltest.Stage, f *fdbmodel.ClaimedFuture, value string, names ...string) {
	var entries []steps.Entry
	for i, name := range names {
		returned := cmp.Or(value, name)
		entries = append(entries, steps.Entry{Future: f, Name: name, First: i == 0, Record: steps.Record{Token: f.Token,
			Number: i + 1, Attempt: f.Attempt(), Value: []byte(returned), Size: int64(len(returned)), At: 1}})
	}
	if len(entries) > 0 {
		_, _, err := steps.Of(s.C).Write(s.Ctx, s.Worker, entries)
		require.NoError(s.T, err)
	}
}

func end(s *modeltest.Stage, f *fdbmodel.ClaimedFuture, e *layout.Exception) {
	require.Equal(s.T, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: f, Permanent: true, Exception: e}))
}

func realize(s *modeltest.Stage, f *fdbmodel.ClaimedFuture) {
	require.Equal(s.T, fdbmodel.Applied,
		s.Finish(s.Worker, fdbmodel.Completion{Future: f, Result: &layout.Result{Value: []byte("v")}}))
}

// forked makes one fork.
func forked(s *modeltest.Stage, r forks.Request) forks.Made {
	s.T.Helper()
	made, err := forks.Of(s.C).Make(s.Ctx, []forks.Request{r})
	require.NoError(s.T, err)
	require.Len(s.T, made, 1)
	return made[0]
}

func fork(s *modeltest.Stage, r forks.Request) layout.ID {
	s.T.Helper()
	made := forked(s, r)
	require.NoError(s.T, made.Err)
	return made.ID
}

// stepsOf returns the steps of a future as NAME=VALUE.
func stepsOf(s *modeltest.Stage, id layout.ID) (list []string) {
	all, err := steps.Of(s.C).List(s.Ctx, id)
	require.NoError(s.T, err)
	for i := range all {
		value, err := steps.Of(s.C).Value(s.Ctx, id, &all[i].Record)
		require.NoError(s.T, err)
		list = append(list, all[i].Name+"="+string(value))
	}
	return list
}

// TestAForkHasTheStepsBeforeItsPoint forks one future from each point.
func TestAForkHasTheStepsBeforeItsPoint(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := failed(s, plain, "reserve", "charge", "mail")
	for text, want := range map[string][]string{
		"": {"reserve=reserve", "charge=charge", "mail=mail"}, "failed": {"reserve=reserve", "charge=charge", "mail=mail"},
		"start": nil, "reserve": nil, "charge": {"reserve=reserve"}, "step:mail": {"reserve=reserve", "charge=charge"},
	} {
		from, err := forks.ParsePoint(text)
		require.NoError(t, err)
		made := forked(s, forks.Request{Source: id, From: from})
		require.NoError(t, made.Err, text)
		require.Equal(t, want, stepsOf(s, made.ID), text)
		require.Equal(t, layout.Ready, made.State)
		require.Equal(t, len(want), made.Fork.Copied)
		if len(want) > 0 {
			require.Equal(t, want[len(want)-1], made.Fork.After+"="+made.Fork.After)
		}
		again, err := forks.ParsePoint(from.String())
		require.NoError(t, err)
		require.Equal(t, made.Fork, forked(s, forks.Request{Source: id, From: again}).Fork, "the text says the same")
		row, err := s.C.Get(s.Ctx, made.ID)
		require.NoError(t, err)
		require.Equal(t, made.Fork, *row.Spec.Fork)
		require.Equal(t, id, row.Spec.Fork.From)
		require.Equal(t, len(want) > 0, row.Steps)
	}
	s.RequireSound()
	for _, f := range s.Claim(s.Worker) {
		all, err := steps.Of(s.C).Load(s.Ctx, s.Worker, &f)
		require.NoError(t, err)
		require.Equal(t, f.Spec.Fork.Copied, all.Last, "an attempt goes on behind them")
		record(s, &f)
		realize(s, &f)
	}
	s.RequireSound()
}

// TestAPointIsReadAsItIsWritten names steps as words that have a meaning.
func TestAPointIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"charge", "failed", "start", "step:", "step:failed", "step:step:a"} {
		point := forks.FromStep(name)
		again, err := forks.ParsePoint(point.String())
		require.NoError(t, err)
		require.Equal(t, point, again)
	}
}

// TestAForkIsAsItsSource compares what a fork is submitted with.
func TestAForkIsAsItsSource(t *testing.T) {
	t.Parallel()
	for _, size := range []int{3, 5000, 100_000} {
		s := modeltest.NewStage(t)
		args := []byte(strings.Repeat("x", size))
		now := s.C.Now()
		id := failed(s, func(sub *fdbmodel.Submission) {
			sub.Args, sub.Unique = args, &fdbmodel.Unique{Key: "k"}
			sub.Spec = layout.Spec{Function: "go:f", MaxRetries: 3, Timeout: time.Minute, Priority: 7, Label: "order 7",
				Tags: []string{"a"}, Session: "session", Trace: map[string]string{"traceparent": "t"}, Schedule: "s",
				ExpiresAt: layout.Millis(now.Add(time.Second)), Deadline: layout.Millis(now.Add(time.Hour))}
		}, "charge")
		s.Clock.Advance(2 * time.Second)
		made := fork(s, forks.Request{Source: id})
		require.NoError(t, s.C.Discard(s.Ctx, id), "a fork needs its source no more")
		row, err := s.C.Get(s.Ctx, made)
		require.NoError(t, err)
		require.Equal(t, layout.Spec{Function: "go:f", Codec: layout.CodecRaw, Args: row.Spec.Args, ArgsSize: int64(size),
			ArgsRef: row.Spec.ArgsRef, ArgsKey: row.Spec.ArgsKey, Queue: "default", MaxRetries: 3, Timeout: time.Minute,
			Priority: 7, Label: "order 7", Tags: []string{"a"}, SubmittedAt: layout.Millis(s.C.Now()),
			Deadline: layout.Millis(now.Add(time.Hour)), Fork: &layout.Fork{From: id, After: "charge", Copied: 1}}, *row.Spec)
		got, err := s.C.Args(s.Ctx, made, row.Spec)
		require.NoError(t, err)
		require.Equal(t, args, got)
		s.RequireSound()
	}
}

// TestLargeStepsOfAFork copies a large value, loses it to the janitor once, and removes the source.
func TestLargeStepsOfAFork(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	value := []byte(strings.Repeat("v", 200_000))
	ref, err := steps.Of(s.C).Store(s.Ctx, id, f.Token, "large", value)
	require.NoError(t, err)
	_, _, err = steps.Of(s.C).Write(s.Ctx, s.Worker, []steps.Entry{{Future: &f, Name: "large", First: true,
		Record: steps.Record{Token: f.Token, Number: 1, Attempt: 1, ValueRef: &ref, Size: ref.Size, At: 1}}})
	require.NoError(t, err)
	end(s, &f, &layout.Exception{Kind: layout.KindError})
	set := []forks.Value{{Step: "given", JSON: []byte(`"` + strings.Repeat("g", 150_000) + `"`)}}
	made := fork(s, forks.Request{Source: id, Name: "fix", Set: set})
	sweep(s)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	require.Equal(t, []string{"large=" + string(value), "given=" + string(set[0].JSON)}, stepsOf(s, made))
	sweep(s)
	require.Len(t, stepsOf(s, made), 2)
	s.RequireSound()
	f = s.Claim(s.Worker)[0]
	realize(s, &f)
	require.NoError(t, s.C.Discard(s.Ctx, made))
	s.RequireSound()
	require.Zero(t, countKeys(s, "chunks")+countKeys(s, "steps")+countKeys(s, "forks"))
}

// TestWhatCannotBeForked asks for forks of what none can be made of.
func TestWhatCannotBeForked(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	without := failed(s, plain)
	with := failed(s, plain, "charge", "failed", "sleep")
	made := s.Submit()
	f := s.Claim(s.Worker)[0]
	record(s, &f, "charge")
	realize(s, &f)
	cancelled := s.Submit()
	_, _, err := s.C.Cancel(s.Ctx, cancelled, "")
	require.NoError(t, err)
	waiting := s.Submit()
	promise, err := promises.Of(s.C).Make(s.Ctx, fdbmodel.Submission{})
	require.NoError(t, err)
	held := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "b" })
	drawn, err := s.C.DrawIDs(1)
	require.NoError(t, err)
	put := drawn[0]
	_, err = results.Of(s.C).Put(s.Ctx, results.Value{ID: put, Bytes: []byte("v")})
	require.NoError(t, err)
	require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "bundles", layout.LaneKind{Bundle: "go:f"}))
	member := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = layout.Lane{Kind: "bundles", Key: "x"} })
	_, _, err = s.C.Cancel(s.Ctx, member, "")
	require.NoError(t, err)
	point := func(text string) forks.Point {
		p, err := forks.ParsePoint(text)
		require.NoError(t, err)
		return p
	}
	set := func(step, json string) []forks.Value { return []forks.Value{{Step: step, JSON: []byte(json)}} }
	taken := fork(s, forks.Request{Source: with, From: point("step:failed")})
	before := countKeys(s, "futures")
	for name, c := range map[string]struct {
		request forks.Request
		want    error
		text    string
	}{
		"failed without a step": {forks.Request{Source: without}, forks.ErrNothingFailed, `fork it from "start"`},
		"realized":              {forks.Request{Source: made}, forks.ErrNothingFailed, "it is realized"},
		"cancelled":             {forks.Request{Source: cancelled}, forks.ErrNothingFailed, "cancelled"},
		"waiting":               {forks.Request{Source: waiting}, fdbmodel.ErrTransition, "ready"},
		"a promise":             {forks.Request{Source: promise.ID, From: forks.FromStart()}, forks.ErrUnforkable, "promise"},
		"an item":               {forks.Request{Source: held, From: forks.FromStart()}, forks.ErrUnforkable, "batch b"},
		"a value that was put":  {forks.Request{Source: put, From: forks.FromStart()}, forks.ErrUnforkable, "put it again"},
		"of a bundle":           {forks.Request{Source: member, From: forks.FromStart()}, forks.ErrUnforkable, "of a bundle"},
		"unknown":               {forks.Request{Source: layout.ID{9}}, fdbmodel.ErrNotFound, ""},
		"unknown step":          {forks.Request{Source: with, From: forks.FromStep("mail")}, forks.ErrNoStep, `"charge"`},
		"step of one without":   {forks.Request{Source: without, From: forks.FromStep("mail")}, forks.ErrNoStep, "none"},
		"a word that is a step": {forks.Request{Source: with, From: point("failed")}, forks.ErrAmbiguous, "step:failed"},
		"no JSON":               {forks.Request{Source: with, Set: set("a", "{")}, layout.ErrBadSpec, "JSON"},
		"no UTF-8":              {forks.Request{Source: with, Set: set("a", "\"\xff\"")}, layout.ErrBadSpec, "UTF-8"},
		"a sleep":               {forks.Request{Source: with, Set: set("sleep#2", "1")}, layout.ErrBadSpec, "sleep"},
		"a bad name":            {forks.Request{Source: with, Set: set("", "1")}, layout.ErrBadName, ""},
		"the step itself": {forks.Request{Source: with, From: forks.FromStep("charge"), Set: set("charge", "1")},
			layout.ErrBadSpec, "is to run"},
		"two values":   {forks.Request{Source: with, Set: append(set("a", "1"), set("a", "1")...)}, layout.ErrBadSpec, "two"},
		"too many":     {forks.Request{Source: with, Set: make([]forks.Value, forks.MaxSet+1)}, layout.ErrBadSpec, "at most"},
		"an id in use": {forks.Request{Source: with, From: point("step:failed"), ID: without}, fdbmodel.ErrIDInUse, ""},
		"the id of a fork of another": {forks.Request{Source: without, From: forks.FromStart(), ID: taken},
			fdbmodel.ErrIDInUse, ""},
		"the id of a fork of another name": {forks.Request{Source: with, From: point("step:failed"), ID: taken, Name: "fix"},
			fdbmodel.ErrIDInUse, ""},
	} {
		one := forked(s, c.request)
		require.ErrorIs(t, one.Err, c.want, name)
		require.ErrorContains(t, one.Err, c.text, name)
		preview, err := forks.Of(s.C).Preview(s.Ctx, []forks.Request{c.request})
		require.NoError(t, err)
		require.ErrorIs(t, preview[0].Err, c.want, name)
	}
	require.Equal(t, before, countKeys(s, "futures"), "nothing was made")
	s.RequireSound()
}

// TestGivenValues replaces a step, and adds others.
func TestGivenValues(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := failed(s, plain, "reserve", "charge")
	made := fork(s, forks.Request{Source: id, Name: "fix", Set: []forks.Value{
		{Step: "charge", JSON: []byte(`{ "id": 7 }`)}, {Step: "mail", JSON: []byte(`null`)},
		{Step: "mail#2", JSON: []byte(`1.50`)},
	}})
	again := forked(s, forks.Request{Source: id, Name: "fix", Set: []forks.Value{
		{Step: "mail#2", JSON: []byte(`1.50`)}, {Step: "mail", JSON: []byte(` null`)},
		{Step: "charge", JSON: []byte(`{"id": 7}`)},
	}})
	require.NoError(t, again.Err, "the same values")
	require.True(t, again.Existed)
	require.Equal(t, []string{"reserve=reserve", `charge={"id":7}`, "mail=null", "mail#2=1.50"}, stepsOf(s, made))
	all, err := steps.Of(s.C).List(s.Ctx, made)
	require.NoError(t, err)
	for i, origin := range []string{"copied", "set", "set", "set"} {
		require.Equal(t, origin, all[i].Origin)
		require.Equal(t, i+1, all[i].Number)
		require.Equal(t, origin == "set", all[i].Codec == layout.CodecJSON)
	}
	require.Equal(t, []string{"reserve=reserve", "charge=charge"}, stepsOf(s, id), "the source is as it was")
	s.RequireSound()
}

// TestAForkBeginsWithItsSteps claims forks while they are made: none is seen without its steps.
func TestAForkBeginsWithItsSteps(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := failed(s, plain, "charge")
	made := fork(s, forks.Request{Source: id})
	f := s.Claim(s.Worker)[0]
	require.Equal(t, made, f.ID)
	require.True(t, f.Steps)
	require.Equal(t, 1, f.Attempt())
	end(s, &f, &layout.Exception{Kind: layout.KindError})
	again := fork(s, forks.Request{Source: made})
	require.Equal(t, []string{"charge=charge"}, stepsOf(s, again), "a fork of a fork")
	all, err := steps.Of(s.C).List(s.Ctx, again)
	require.NoError(t, err)
	require.Equal(t, "copied", all[0].Origin)
	require.NoError(t, s.C.Discard(s.Ctx, made))
	s.RequireSound()
}

// TestAGivenValueStaysOne forks a fork that was given a value, which no attempt has made.
func TestAGivenValueStaysOne(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	set := []forks.Value{{Step: "charge", JSON: []byte("7")}}
	made := fork(s, forks.Request{Source: failed(s, plain, "reserve", "charge"), Set: set})
	f := s.Claim(s.Worker)[0]
	end(s, &f, &layout.Exception{Kind: layout.KindError})
	again := fork(s, forks.Request{Source: made})
	all, err := steps.Of(s.C).List(s.Ctx, again)
	require.NoError(t, err)
	require.Equal(t, "copied", all[0].Origin)
	require.Equal(t, "set", all[1].Origin)
}

// TestForksOfANameAreMadeOnce repeats a request, before and after its fork, and its source, are gone.
func TestForksOfANameAreMadeOnce(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := failed(s, plain, "charge")
	request := forks.Request{Source: id, Name: "fix"}
	first := forked(s, request)
	require.NoError(t, first.Err)
	require.False(t, first.Existed)
	second := forked(s, request)
	require.NoError(t, second.Err)
	require.True(t, second.Existed)
	require.Equal(t, first.ID, second.ID)
	require.Equal(t, first.Fork, second.Fork)
	request.From = forks.FromStart()
	require.ErrorIs(t, forked(s, request).Err, forks.ErrForked)
	request.From, request.Set = forks.FromFailed(), []forks.Value{{Step: "mail", JSON: []byte("1")}}
	require.ErrorIs(t, forked(s, request).Err, forks.ErrForked)
	request.Set, request.Name = nil, "other"
	require.NotEqual(t, first.ID, fork(s, request))
	row, err := s.C.Get(s.Ctx, first.ID)
	require.NoError(t, err)
	require.Equal(t, "fix", row.Spec.Label)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	request.Name = "fix"
	require.True(t, forked(s, request).Existed, "without its source")
	require.ErrorIs(t, forked(s, forks.Request{Source: id, Name: "third"}).Err, fdbmodel.ErrNotFound)
	for _, name := range []string{"", "\n", strings.Repeat("x", 65)} {
		require.ErrorIs(t, forks.CheckName(name), layout.ErrBadName)
	}
	require.NoError(t, forks.CheckName("fix 1"))
	require.NoError(t, forks.CheckName(strings.Repeat("x", forks.MaxName)))
	s.RequireSound()
}

// TestForksAreListed lists the forks of a future in pages, and removes some, and then the future.
func TestForksAreListed(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := failed(s, plain, "charge")
	want := map[layout.ID]bool{}
	for range 5 {
		want[fork(s, forks.Request{Source: id})] = true
	}
	got, behind := map[layout.ID]bool{}, layout.ID{}
	for pages := 0; ; pages++ {
		page, last, err := forks.Of(s.C).List(s.Ctx, id, behind, 2)
		require.NoError(t, err)
		for _, one := range page {
			got[one.ID] = true
			require.Equal(t, layout.Ready, one.State)
			require.Equal(t, id, one.Fork.From)
		}
		if behind = last; last.IsZero() {
			require.Equal(t, 2, pages)
			break
		}
	}
	require.Equal(t, want, got)
	f := s.Claim(s.Worker)[0]
	realize(s, &f)
	require.NoError(t, s.C.Discard(s.Ctx, f.ID))
	all, _, err := forks.Of(s.C).List(s.Ctx, id, layout.ID{}, 0)
	require.NoError(t, err)
	require.Len(t, all, 4)
	s.RequireSound()
	_, last, err := forks.Of(s.C).List(s.Ctx, id, all[1].ID, 2)
	require.NoError(t, err)
	require.Zero(t, last, "a full page is the last one")
	key := s.C.Keys().Spec(all[2].ID)
	whole := s.Read(key)
	s.Store(key, []byte{1})
	readable, last, err := forks.Of(s.C).List(s.Ctx, id, all[1].ID, 1)
	require.NoError(t, err)
	require.Empty(t, readable)
	require.Equal(t, all[2].ID, last, "a page ends with one that can't be read")
	s.Store(key, whole)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	require.Zero(t, countKeys(s, "forks"))
	_, _, err = forks.Of(s.C).List(s.Ctx, id, layout.ID{}, 0)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	s.RequireSound()
}

func sweep(s *modeltest.Stage) {
	for shard := range s.C.Config().Shards {
		for cursor, more := []byte(nil), true; more; more = cursor != nil {
			var err error
			cursor, _, err = maintenance.Of(s.C).SweepChunks(s.Ctx, shard, cursor)
			require.NoError(s.T, err)
		}
	}
}
