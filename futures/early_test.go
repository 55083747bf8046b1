package futures

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel"
)

// TestEarlyNoticesOutliveTheirSubmits compares with the rule: a notice is found
// as long as a submit runs that ran when it came, and nothing is kept once none
// runs.
func TestEarlyNoticesOutliveTheirSubmits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e early
		type submit struct{ number, generation int }
		var running []submit
		ranAt := map[ID]int{} // notices and the number of the last submit that had begun
		begun, came := 0, byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) {
				begun++
				running = append(running, submit{begun, e.begin()})
			},
			"end": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("none runs")
				}
				i := rapid.IntRange(0, len(running)-1).Draw(t, "submit")
				e.end(running[i].generation)
				running = append(running[:i], running[i+1:]...)
			},
			"notice": func(*rapid.T) {
				came++
				e.keep(&fdbmodel.Notice{ID: ID{came}})
				if len(running) > 0 {
					ranAt[ID{came}] = begun
				}
			},
			"": func(t *rapid.T) {
				for id, number := range ranAt {
					for _, s := range running {
						if s.number <= number {
							_, found := e.find(id)
							require.True(t, found)
						}
					}
				}
				if len(running) == 0 {
					require.Nil(t, e.generations[0].notices)
					require.Nil(t, e.generations[1].notices)
				}
			},
		})
	})
}
