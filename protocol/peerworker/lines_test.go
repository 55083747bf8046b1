package peerworker

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestLines compares lines with a list that is searched from its begin.
func TestLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l lines
		var waits, taken []*attempt
		owners := []string{"", "a", "b"}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				x := &attempt{spec: &layout.Spec{Owner: rapid.SampledFrom(owners).Draw(t, "owner"),
					Priority: rapid.Uint8Range(0, 2).Draw(t, "priority")}}
				if x.spec.Owner != "" {
					x.spec.Parallel = rapid.IntRange(0, 2).Draw(t, "limit")
				}
				x.spec.Requirements.RAM = rapid.Int64Range(0, 1).Draw(t, "ram") * 100
				l.add(x)
				waits = append(waits, x)
			case 1:
				if len(waits) > 0 {
					i := rapid.IntRange(0, len(waits)-1).Draw(t, "leaves")
					l.leave(waits[i], runOver)
					waits = append(waits[:i:i], waits[i+1:]...)
				}
			case 2:
				if len(taken) > 0 {
					i := rapid.IntRange(0, len(taken)-1).Draw(t, "returns")
					l.add(taken[i])
					waits = append(waits, taken[i])
					taken = append(taken[:i:i], taken[i+1:]...)
				}
			case 3:
				request := fdbmodel.ClaimRequest{Max: rapid.IntRange(1, 5).Draw(t, "most"), Free: layout.Resources{
					RAM: rapid.Int64Range(0, 3).Draw(t, "free") * 100,
				}}
				skip := rapid.SampledFrom(owners).Draw(t, "skip")
				if skip != "" {
					request.Skip = func(owner string) bool { return owner == skip }
				}
				var want []*attempt
				want, waits = expected(waits, &request)
				got := l.take(&request, nil)
				require.Equal(t, want, got)
				taken = append(taken, got...)
			}
			require.Equal(t, len(waits), l.n)
			inLines := 0
			for _, of := range l.by {
				inLines += len(*of)
			}
			require.Equal(t, len(waits), inLines, "nothing is kept that does not wait")
		}
	})
}

// expected takes by looking at all that wait.
func expected(waits []*attempt, request *fdbmodel.ClaimRequest) (taken, left []*attempt) {
	free, given := request.Free.RAM, map[string]int{}
	left = waits
	for len(taken) < request.Max {
		best := -1
		for i, x := range left {
			k := x.line()
			fits := k.ram <= free && (k.owner == "" ||
				given[k.owner] < x.spec.Parallel && (request.Skip == nil || !request.Skip(k.owner)))
			if fits && (best < 0 || x.before(left[best])) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		x := left[best]
		taken, left = append(taken, x), append(left[:best:best], left[best+1:]...)
		free -= x.line().ram
		given[x.line().owner]++
	}
	return taken, left
}
