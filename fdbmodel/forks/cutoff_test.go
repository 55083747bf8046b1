package forks_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// TestAForkAfterOneThatWasCutOff repeats a fork whose first call died while it copied a large value: its first pieces
// are there, and the others are not.
func TestAForkAfterOneThatWasCutOff(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	value := bytes.Repeat([]byte("v"), 3*layout.ChunkSize)
	ref, err := steps.Of(s.C).Store(s.Ctx, id, f.Token, "large", value)
	require.NoError(t, err)
	_, _, err = steps.Of(s.C).Write(s.Ctx, s.Worker, []steps.Entry{{Future: &f, Name: "large", First: true,
		Record: steps.Record{Token: f.Token, Number: 1, Attempt: 1, ValueRef: &ref, Size: ref.Size, At: 1}}})
	require.NoError(t, err)
	end(s, &f, &layout.Exception{Kind: layout.KindError})
	_, err = s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(s.C.Keys().Chunk(forks.Of(s.C).IDOf("fix", id), ref, 0), value[:layout.ChunkSize])
		return nil
	})
	require.NoError(t, err)
	made := fork(s, forks.Request{Source: id, Name: "fix"})
	require.Equal(t, []string{"large=" + string(value)}, stepsOf(s, made))
	s.RequireSound()
}

// TestAForkEndsThoughItsPiecesVanish has them gone each time before the fork refers to them.
func TestAForkEndsThoughItsPiecesVanish(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := failed(s, plain, "charge")
	c, times := s.Vanishing("futura-fork")
	set := []forks.Value{{Step: "given", JSON: []byte(`"` + strings.Repeat("g", 150_000) + `"`)}}
	_, err := forks.Of(c).Make(s.Ctx, []forks.Request{{Source: id, Name: "fix", Set: set}})
	require.ErrorContains(t, err, "its value of 150002 bytes was stored 8 times")
	require.Equal(t, 8, *times)
	made := fork(s, forks.Request{Source: id, Name: "fix", Set: set})
	require.Equal(t, []string{"charge=charge", "given=" + string(set[0].JSON)}, stepsOf(s, made))
	s.RequireSound()
}
