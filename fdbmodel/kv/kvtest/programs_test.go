package kvtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest/reference"
	"github.com/stretchr/testify/require"
)

func newReference(testing.TB) kv.Database { return reference.Open(reference.Options{}) }

// programCount is how many random programs a test runs.
func programCount() int {
	if os.Getenv("FUTURA_LONG") == "1" {
		return 10_000
	}
	return 1000
}

func transcript(t *testing.T, db kv.Database, seed uint64) []string {
	t.Helper()
	lines, err := kvtest.RunProgram(t.Context(), db, kvtest.NewProgram(seed))
	require.NoError(t, err)
	return lines
}

func TestProgramsDoNotDependOnWhatElseIsStored(t *testing.T) {
	shared := newReference(t)
	for seed := range uint64(200) {
		require.Equal(t, transcript(t, newReference(t), seed), transcript(t, shared, seed))
	}
}

// TestProgramsReachEverything shows that programs meet each kind of outcome
// often enough to compare it.
func TestProgramsReachEverything(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(500) {
		for _, line := range transcript(t, newReference(t), seed) {
			for _, what := range []string{
				": conflict", ": #", ": nothing to write", kv.ErrUnreadable.Error(), kv.ErrBadStampOffset.Error(), "...",
				"<#", "<absent>", " snapshot", " reverse", "but 1", "cancel", "add read", "add write", `=""`, "op 6",
			} {
				if strings.Contains(line, what) {
					outcomes[what]++
				}
			}
			require.NotContains(t, line, "before the last commit")
			require.NotContains(t, line, "not above the last")
		}
	}
	t.Log(outcomes)
	for what, times := range outcomes {
		require.Greater(t, times, 20, what)
	}
	require.Len(t, outcomes, 16)
}

func TestProgramsOnEmbedded(t *testing.T) {
	kvtest.ComparePrograms(t, newReference, newEmbedded, programCount(), kvtest.FirstSeed())
}

func newEmbedded(t testing.TB) kv.Database {
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
