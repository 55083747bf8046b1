//go:build linux

package b7s

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchAgainstB7s has futura-bench compare its peers with nodes of b7s.
func TestBenchAgainstB7s(t *testing.T) {
	const items, database = 2000, "futura-bench" // as the command names it
	for _, d := range dialects() {
		t.Run(d.branch, func(t *testing.T) {
			args := []string{"peers", "--json", "--futures", fmt.Sprint(items), "--b7s", d.program(t)}
			if d.stored {
				store := startFerret(t)
				first := d.start(t, "b7s head", "head", "--rest-api", freeAddress(t), "--batch-db-server", store.uri,
					"--batch-db-name", database)
				store.indexKeys(t, database)
				first.stop(t)
				args = append(args, "--b7s-store", store.uri)
			}
			command := exec.CommandContext(t.Context(), built(benchName), args...)
			command.Dir, command.Stderr = t.TempDir(), os.Stderr
			out, err := command.Output()
			require.NoError(t, err)
			var report struct {
				Ratio float64
				B7S   struct {
					Items     int
					PerSecond float64 `json:"items_per_second"`
					Ratio     float64
				}
			}
			require.NoError(t, json.Unmarshal(out, &report))
			require.Equal(t, items, report.B7S.Items)
			t.Logf("b7s %s: %.0f items per second; peers: %.1f times that, and %.2f times the rate of workers of the cluster",
				d.branch, report.B7S.PerSecond, report.B7S.Ratio, report.Ratio)
			require.GreaterOrEqual(t, report.B7S.Ratio, 10.0)
		})
	}
}
