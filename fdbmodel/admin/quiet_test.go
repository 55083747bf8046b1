package admin_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestWhatIsOfANewerVersionLives: a sign of life counts whether or not it can be read, if it changes.
func TestWhatIsOfANewerVersionLives(t *testing.T) {
	t.Parallel()
	newer := func(n byte) []byte { return []byte{layout.RecordVersion + 1, n} }
	for name, beat := range map[string]func(layout.Keyspace) []byte{
		"session newer": func(k layout.Keyspace) []byte { return k.Session("newer") },
		"worker newer":  func(k layout.Keyspace) []byte { return k.Worker("newer", layout.WorkerHeartbeat) },
	} {
		for _, lives := range []bool{true, false} {
			s := modeltest.NewStage(t)
			s.Store(s.C.Keys().Worker("newer", layout.WorkerAlive), newer(0))
			s.Store(beat(s.C.Keys()), newer(1))
			done := make(chan error)
			go func() { done <- admin.RequireQuiet(s.Ctx, s.C) }()
			for {
				if due, waits := s.Clock.Next(); waits && due.After(s.Clock.Now()) {
					break
				}
				runtime.Gosched()
			}
			if lives {
				s.Store(beat(s.C.Keys()), newer(2))
			}
			s.Clock.Advance(s.C.Config().DeadAfter)
			if err := <-done; lives {
				require.ErrorIs(t, err, fdbmodel.ErrLive, name)
				require.ErrorContains(t, err, name)
			} else {
				require.NoError(t, err, name)
			}
		}
	}
}
