package modeltest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/internal/storetest"
)

// PlayUnknown plays each operation once with each form of an unknown result of the
// commits whose tag its name begins with.
func PlayUnknown(t *testing.T, plays map[string]func(s *Stage, strike func())) {
	faults := []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate}
	for tag, play := range plays {
		// On a server, each operation meets one of them.
		for n := range storetest.Fewer(len(faults), 1) {
			fault := faults[(n+len(tag))%len(faults)]
			t.Run(tag+" "+fault.String(), func(t *testing.T) {
				t.Parallel()
				s := NewStage(t)
				struck := 0
				play(s, func() {
					struck++
					s.Faults.FailNext(fault, func(found string) bool { return found != "" && strings.HasPrefix(tag, found) })
				})
				s.Faults.Flush()
				require.Equal(t, struck, int(s.Faults.Counts().Injected[fault]), "the fault did not happen")
				report, err := audit.Check(s.Ctx, s.C, audit.Options{})
				require.NoError(t, err)
				require.Empty(t, report.Problems)
				require.NoError(t, s.Faults.Close())
			})
		}
	}
}
