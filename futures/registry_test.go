package futures

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/layout"
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
				e.keep(&layout.Notice{ID: ID{came}})
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

func TestSubscribedEntryDoesNotSwallowTheSubmits(t *testing.T) {
	t.Parallel()
	var r registry
	r.init()
	c := &Client{}
	id := ID{1}
	generation := r.beginSubmit()
	elsewhere := &Future{client: c, id: id}
	r.doneOf(elsewhere, func() {})
	require.Equal(t, []ID{id}, r.takeWanted())
	notice := layout.Notice{ID: id, State: layout.Realized, Result: &layout.Result{Value: []byte("once")}}
	require.Empty(t, r.deliver([]layout.Notice{notice}))
	require.NotNil(t, r.outcomeOf(elsewhere))
	submitted := &Future{client: c, id: id}
	require.Empty(t, r.endSubmit(generation, []*Future{submitted}))
	require.Equal(t, "once", string(r.outcomeOf(submitted).Result.Value))
	require.Empty(t, r.pending)
}

func TestLeaveForgetsTheWaiters(t *testing.T) {
	t.Parallel()
	var r registry
	r.init()
	c := &Client{}
	fs := []*Future{{client: c, id: ID{1}}, {client: c, id: ID{2}}, {client: c, id: ID{1}}}
	groups := []*group{newGroup(3, false), newGroup(3, true)}
	waiters := make([][]waiter, len(groups))
	for i, g := range groups {
		waiters[i] = []waiter{{group: g, index: 0}, {group: g, index: 1}, {group: g, index: 2}}
		r.join(fs, waiters[i], func() {})
	}
	require.Equal(t, []ID{{1}, {2}}, r.awaited())
	r.end(ID{2}, Outcome{})
	r.leave(fs, waiters[0])
	require.Equal(t, []ID{{1}}, r.awaited())
	r.end(ID{1}, Outcome{})
	require.False(t, groups[0].over(), "who left is told of nothing")
	require.True(t, groups[1].over())
	require.ElementsMatch(t, []int{0, 1, 2}, groups[1].take())
	r.leave(fs, waiters[1])
	require.Empty(t, r.awaited())
}
