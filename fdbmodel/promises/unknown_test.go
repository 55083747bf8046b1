package promises_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// TestUnknownResultsOfPromises is TestUnknownResults for promises.
func TestUnknownResultsOfPromises(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-promise": func(s *modeltest.Stage, strike func()) {
			strike()
			made := mustMake(s, fdbmodel.Submission{})
			require.False(s.T, made.Existed)
			s.Faults.Flush()
			require.Equal(s.T, int64(1), s.Counted(layout.Blocked))
			_, err := promises.Of(s.C).ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte("v")})
			require.NoError(s.T, err)
		},
		"futura-promise with a key": func(s *modeltest.Stage, strike func()) {
			strike()
			made := mustMake(s, fdbmodel.Submission{Key: "k"})
			require.False(s.T, made.Existed)
			s.Faults.Flush()
			require.True(s.T, mustMake(s, fdbmodel.Submission{Key: "k"}).Existed)
			_, err := promises.Of(s.C).ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte("v")})
			require.NoError(s.T, err)
		},
		"futura-token": func(s *modeltest.Stage, strike func()) {
			made := mustMake(s, fdbmodel.Submission{})
			strike()
			token, err := promises.Of(s.C).NewToken(s.Ctx, made.ID)
			require.NoError(s.T, err)
			s.Faults.Flush()
			_, err = promises.Of(s.C).Open(s.Ctx, made.Token)
			require.ErrorIs(s.T, err, promises.ErrBadToken)
			_, err = promises.Of(s.C).Open(s.Ctx, token)
			require.NoError(s.T, err)
		},
		"futura-fulfill": func(s *modeltest.Stage, strike func()) {
			made := mustMake(s, fdbmodel.Submission{Spec: layout.Spec{Session: "session"}})
			strike()
			already, err := promises.Of(s.C).ResolveBy(s.Ctx, made.Token, promises.Value{Bytes: []byte("v")})
			require.NoError(s.T, err)
			require.False(s.T, already)
			s.Faults.Flush()
			require.Equal(s.T, int64(1), s.Counted(layout.Realized))
			require.Equal(s.T, int64(0), s.Counted(layout.Blocked))
			notices, _, err := s.Box.Listen(s.Ctx)
			require.NoError(s.T, err)
			require.Len(s.T, notices, 1)
		},
		"futura-decline": func(s *modeltest.Stage, strike func()) {
			made := mustMake(s, fdbmodel.Submission{})
			strike()
			already, err := promises.Of(s.C).Reject(s.Ctx, made.ID, "no")
			require.NoError(s.T, err)
			require.False(s.T, already)
			s.Faults.Flush()
			require.Equal(s.T, int64(1), s.Counted(layout.Failed))
		},
	})
}

func mustMake(s *modeltest.Stage, sub fdbmodel.Submission) promises.Made {
	made, err := promises.Of(s.C).Make(s.Ctx, sub)
	require.NoError(s.T, err)
	return made
}
