package promises_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/results"
)

func requireSound(s *modeltest.Stage) {
	modeltest.RequireSound(s.T, s.C)
}

func TestAPromiseHasOneValue(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := promises.Of(s.C)
	made := mustMake(s, fdbmodel.Submission{})
	user := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{made.ID} })
	require.Equal(t, layout.Blocked, s.State(user))
	require.Empty(t, s.Claim(s.Worker), "no worker runs a promise")
	requireSound(s)
	first := promises.Value{Bytes: []byte(`{"paid": true}`), Codec: layout.CodecJSON}
	already, err := all.Resolve(s.Ctx, made.ID, first)
	require.NoError(t, err)
	require.False(t, already)
	require.Equal(t, layout.Ready, s.State(user), "who takes its value runs")
	for _, same := range []string{`{"paid": true}`, `{"paid":true}`} {
		already, err = all.ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte(same), Codec: layout.CodecJSON})
		require.NoError(t, err)
		require.True(t, already)
	}
	_, err = all.ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte(`{"paid":false}`), Codec: layout.CodecJSON})
	require.ErrorIs(t, err, promises.ErrConflict)
	_, err = all.ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte(`{"paid":true}`)})
	require.ErrorIs(t, err, promises.ErrConflict, "as other bytes")
	require.ErrorContains(t, err, "with another value, of 13 bytes")
	_, err = all.Reject(s.Ctx, made.ID, "no")
	require.ErrorIs(t, err, promises.ErrConflict)
	require.ErrorContains(t, err, "with a value, of 13 bytes", "a rejection has none")
	row, err := s.C.Get(s.Ctx, made.ID)
	require.NoError(t, err)
	require.Equal(t, `{"paid":true}`, string(row.Result.Value))
	require.ErrorIs(t, s.C.Retry(s.Ctx, made.ID), fdbmodel.ErrTransition)
	requireSound(s)
}

func TestARejectedPromiseMayWaitAgain(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := promises.Of(s.C)
	made := mustMake(s, fdbmodel.Submission{})
	user := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{made.ID} })
	already, err := all.RejectBy(s.Ctx, made.Token, "too dear")
	require.NoError(t, err)
	require.False(t, already)
	row, err := s.C.Get(s.Ctx, user)
	require.NoError(t, err)
	require.Equal(t, layout.KindUpstream, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "too dear")
	already, err = all.RejectBy(s.Ctx, made.Token, "too dear")
	require.NoError(t, err)
	require.True(t, already)
	_, err = all.RejectBy(s.Ctx, made.Token, "too late")
	require.ErrorIs(t, err, promises.ErrConflict)
	_, err = all.ResolveBy(s.Ctx, made.Token, promises.Value{})
	require.ErrorIs(t, err, promises.ErrConflict)
	require.ErrorContains(t, err, "too dear")
	require.NoError(t, s.C.Retry(s.Ctx, made.ID))
	requireSound(s)
	_, err = all.ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte("yes")})
	require.NoError(t, err, "its token still opens it")
	require.NoError(t, s.C.Retry(s.Ctx, user))
	s.C.ResolveMarked(s.Ctx)
	require.Equal(t, layout.Ready, s.State(user))
	requireSound(s)
}

// TestMessagesOfRejections are cut, and there always is one.
func TestMessagesOfRejections(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for message, want := range map[string]string{"": "rejected", strings.Repeat("x", fdbmodel.MaxMessage+1): ""} {
		made := mustMake(s, fdbmodel.Submission{})
		for n := range 2 {
			already, err := promises.Of(s.C).Reject(s.Ctx, made.ID, message)
			require.NoError(t, err)
			require.Equal(t, n == 1, already)
		}
		row, err := s.C.Get(s.Ctx, made.ID)
		require.NoError(t, err)
		require.LessOrEqual(t, len(row.Exception.Message), fdbmodel.MaxMessage)
		if want != "" {
			require.Equal(t, want, row.Exception.Message)
		}
	}
}

// TestTokensMeanwhile has others draw a token, and remove the promise, between the reads of an operation and its
// commit.
func TestTokensMeanwhile(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	made := mustMake(s, fdbmodel.Submission{})
	var renewed promises.Token
	beside := s.Interrupted("futura-fulfill", func() {
		var err error
		renewed, err = promises.Of(s.C).NewToken(s.Ctx, made.ID)
		require.NoError(t, err)
	})
	_, err := promises.Of(beside).ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte("v")})
	require.ErrorIs(t, err, promises.ErrBadToken, "the former one opens nothing any more")
	require.Equal(t, layout.Blocked, s.State(made.ID))
	_, err = promises.Of(s.C).ResolveBy(s.Ctx, renewed, promises.Value{Bytes: []byte("v")})
	require.NoError(t, err)

	gone := mustMake(s, fdbmodel.Submission{})
	beside = s.Interrupted("futura-token", func() {
		_, _, err := s.C.Cancel(s.Ctx, gone.ID, "")
		require.NoError(t, err)
		require.NoError(t, s.C.Discard(s.Ctx, gone.ID))
	})
	_, err = promises.Of(beside).NewToken(s.Ctx, gone.ID)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	requireSound(s)
}

func TestAPromiseThatIsOverSaysWhy(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := promises.Of(s.C)
	cancelled := mustMake(s, fdbmodel.Submission{})
	_, _, err := s.C.Cancel(s.Ctx, cancelled.ID, "not wanted")
	require.NoError(t, err)
	_, err = all.ResolveBy(s.Ctx, cancelled.Token, promises.Value{})
	require.ErrorIs(t, err, promises.ErrCancelled)
	require.ErrorContains(t, err, "not wanted")
	_, err = all.NewToken(s.Ctx, cancelled.ID)
	require.ErrorIs(t, err, fdbmodel.ErrTransition)
	limit := layout.Millis(s.Clock.Now().Add(time.Minute))
	late := mustMake(s, fdbmodel.Submission{Spec: layout.Spec{ExpiresAt: limit}})
	swept := mustMake(s, fdbmodel.Submission{Spec: layout.Spec{Deadline: limit}})
	s.Clock.Advance(time.Minute)
	_, err = all.ResolveBy(s.Ctx, late.Token, promises.Value{})
	require.ErrorIs(t, err, promises.ErrExpired, "no janitor has looked")
	require.Equal(t, layout.Failed, s.State(late.ID))
	ended, _, err := maintenance.Of(s.C).EndOverdue(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	_, err = all.RejectBy(s.Ctx, swept.Token, "no")
	require.ErrorIs(t, err, promises.ErrExpired)
	requireSound(s)
	_, err = all.Resolve(s.Ctx, s.Submit(), promises.Value{})
	require.ErrorIs(t, err, promises.ErrNoPromise)
	_, err = all.NewToken(s.Ctx, s.Submit())
	require.ErrorIs(t, err, promises.ErrNoPromise)
	_, err = all.Resolve(s.Ctx, layout.ID{1}, promises.Value{})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
}

// TestATokenOpensItsPromiseAlone tries tokens that are wrong in each way: all get the same
// answer, and read the same keys.
func TestATokenOpensItsPromiseAlone(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := promises.Of(s.C)
	one, other := mustMake(s, fdbmodel.Submission{}), mustMake(s, fdbmodel.Submission{})
	plain := s.Submit()
	gone := mustMake(s, fdbmodel.Submission{})
	_, err := all.RejectBy(s.Ctx, gone.Token, "no")
	require.NoError(t, err)
	require.NoError(t, s.C.Discard(s.Ctx, gone.ID))
	older := one.Token
	one.Token, err = all.NewToken(s.Ctx, one.ID)
	require.NoError(t, err)
	as := func(t promises.Token, id layout.ID) promises.Token { t.ID = id; return t }
	for name, token := range map[string]promises.Token{
		"an older one": older, "of another promise": as(other.Token, one.ID), "of no promise": as(one.Token, plain),
		"of nothing": as(one.Token, layout.ID{7}), "of one that is gone": gone.Token, "zero": {ID: one.ID},
	} {
		_, err := all.ResolveBy(s.Ctx, token, promises.Value{Bytes: make([]byte, 10_000)})
		require.Equal(t, promises.ErrBadToken, err, name)
		_, err = all.RejectBy(s.Ctx, token, "no")
		require.Equal(t, promises.ErrBadToken, err, name)
		_, err = all.Open(s.Ctx, token)
		require.Equal(t, promises.ErrBadToken, err, name)
	}
	require.Equal(t, int64(2), s.Counted(layout.Blocked))
	require.NoError(t, s.C.EachKey(s.Ctx, s.C.Keys().All(), func(item kv.KeyValue) error {
		for _, token := range []promises.Token{one.Token, other.Token} {
			require.NotContains(t, string(item.Value), string(secretOf(t, token)))
			require.NotContains(t, string(item.Key), string(secretOf(t, token)))
			require.NotContains(t, string(item.Value), token.Text())
		}
		require.NotContains(t, string(item.Key), "chunks", "a value was stored for a wrong token")
		return nil
	}))
}

func TestTokensAreTextThatShowsNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	made := mustMake(s, fdbmodel.Submission{})
	text := made.Token.Text()
	for _, shown := range []string{
		made.Token.String(), fmt.Sprintf("%v %+v %#v %s", made, made, made.Token, &made.Token),
	} {
		require.NotContains(t, shown, text)
		require.Contains(t, shown, "not shown")
	}
	token, err := promises.ParseToken(text)
	require.NoError(t, err)
	require.Equal(t, made.Token, token)
	require.Regexp(t, `^prm_[A-Za-z0-9_-]{54}$`, text)
	for _, bad := range []string{"", "prm_", text[4:], text + "A", text[:len(text)-1], "prm_" + strings.Repeat("!", 54),
		text[:10] + "\n" + text[10:], text[:len(text)-1] + string(text[len(text)-1]+1)} {
		_, err := promises.ParseToken(bad)
		require.Equal(t, promises.ErrBadToken, err, "%q", bad)
	}
}

// secretOf returns the bytes of a token that are secret.
func secretOf(t *testing.T, token promises.Token) []byte {
	t.Helper()
	all, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token.Text(), "prm_"))
	require.NoError(t, err)
	require.Equal(t, token.ID[:], all[:16])
	return all[16:]
}

func TestLargeValues(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all := promises.Of(s.C)
	small := mustMake(s, fdbmodel.Submission{})
	_, err := all.Resolve(s.Ctx, small.ID, promises.Value{Bytes: make([]byte, fdbmodel.MaxResultInline)})
	require.NoError(t, err)
	row, err := s.C.Get(s.Ctx, small.ID)
	require.NoError(t, err)
	require.Len(t, row.Result.Value, fdbmodel.MaxResultInline)
	for _, size := range []int{fdbmodel.MaxResultInline + 1, 300_000} {
		requireLarge(s, size)
	}
}

// requireLarge requires that a large value of a promise lies beside its record, and goes with it.
func requireLarge(s *modeltest.Stage, size int) {
	t, all := s.T, promises.Of(s.C)
	made := mustMake(s, fdbmodel.Submission{})
	large := bytes.Repeat([]byte("l"), size)
	already, err := all.Resolve(s.Ctx, made.ID, promises.Value{Bytes: large})
	require.NoError(t, err)
	require.False(t, already)
	already, err = all.ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: large})
	require.NoError(t, err)
	require.True(t, already)
	other := bytes.Clone(large)
	other[len(other)-1]++
	_, err = all.ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: other})
	require.ErrorIs(t, err, promises.ErrConflict)
	row, err := s.C.Get(s.Ctx, made.ID)
	require.NoError(t, err)
	value, err := results.Of(s.C).Value(s.Ctx, made.ID, row.Result)
	require.NoError(t, err)
	require.Equal(t, large, value)
	require.Empty(t, row.Result.Value, "its record stays small")
	requireSound(s)
	_, err = all.Resolve(s.Ctx, made.ID, promises.Value{Bytes: make([]byte, layout.MaxPut+1)})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	for _, bad := range []promises.Value{{Bytes: []byte("{"), Codec: layout.CodecJSON}, {Codec: layout.CodecArgv}} {
		_, err = all.Resolve(s.Ctx, made.ID, bad)
		require.ErrorIs(t, err, layout.ErrBadSpec)
	}
	require.NoError(t, s.C.Discard(s.Ctx, made.ID))
	require.NoError(t, s.C.EachKey(s.Ctx, s.C.Keys().RowRange(made.ID), func(item kv.KeyValue) error {
		return fmt.Errorf("left: %q", item.Key)
	}))
}

func TestPromisesByKeyAndName(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	first := mustMake(s, fdbmodel.Submission{Key: "k", Spec: layout.Spec{Label: "l"}})
	again := mustMake(s, fdbmodel.Submission{Key: "k", Spec: layout.Spec{Label: "l"}})
	require.True(t, again.Existed)
	require.Equal(t, first.ID, again.ID)
	require.True(t, again.Token.IsZero(), "a token is shown once")
	unique := &fdbmodel.Unique{Key: "u"}
	held := mustMake(s, fdbmodel.Submission{Unique: unique})
	_, err := promises.Of(s.C).Make(s.Ctx, fdbmodel.Submission{Unique: unique})
	require.ErrorIs(t, err, fdbmodel.ErrNotUnique)
	_, err = promises.Of(s.C).Resolve(s.Ctx, held.ID, promises.Value{})
	require.NoError(t, err)
	mustMake(s, fdbmodel.Submission{Unique: unique})
	requireSound(s)
}

func TestPromisesAreListed(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	made := mustMake(s, fdbmodel.Submission{Spec: layout.Spec{Tags: []string{"t"}}})
	for _, f := range []inspect.Filter{{}, {Newest: true}, {Tag: "t", Newest: true}, {Function: layout.FunctionPromise},
		{State: layout.Blocked}} {
		require.NoError(t, f.ResolveFunction(s.Ctx, s.C))
		rows, _, err := inspect.List(s.Ctx, s.C, f, nil, 9)
		require.NoError(t, err)
		require.Len(t, rows, 1, "%+v", f)
		require.Equal(t, made.ID, rows[0].ID)
	}
	e, err := inspect.Explain(s.Ctx, s.C, made.ID)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonUnresolved, e.Reason)
	require.Contains(t, e.Text, "has its token, drawn at 2030")
	require.NotContains(t, e.Text, made.Token.Text())
	_, err = promises.Of(s.C).Resolve(s.Ctx, made.ID, promises.Value{})
	require.NoError(t, err)
	e, err = inspect.Explain(s.Ctx, s.C, made.ID)
	require.NoError(t, err)
	require.Contains(t, e.Text, "was resolved at 2030")
}

func TestWhatAPromiseCannotHave(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for name, sub := range map[string]fdbmodel.Submission{
		"function": {Spec: layout.Spec{Function: "go:f"}}, "inputs": {Inputs: []layout.ID{{1}}},
		"batch": {Spec: layout.Spec{Owner: "g"}}, "worker": {Assigned: "w"}, "delay": {NotBefore: s.Clock.Now().Add(1)},
		"lane": {Spec: layout.Spec{Lane: layout.Lane{Kind: "k", Key: "y"}}}, "object": {Spec: layout.Spec{AsObject: true}},
		"retries": {Spec: layout.Spec{MaxRetries: 1}}, "timeout": {Spec: layout.Spec{Timeout: 1}},
		"requirements": {Spec: layout.Spec{Requirements: layout.Requirements{CPU: 1}}},
	} {
		_, err := promises.Of(s.C).Make(s.Ctx, sub)
		require.ErrorIs(t, err, layout.ErrBadSpec, name)
	}
	_, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: layout.FunctionPromise}}})
	require.ErrorIs(t, err, layout.ErrBadName, "nobody submits a promise that has no token")
}
