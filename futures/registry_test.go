package futures

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// submitting is a submit in progress.
type submitting struct {
	handle *Future
	told   bool // its notice came
}

// registryMachine submits a few ids at random, several at a time, and uses
// handles from elsewhere too.
type registryMachine struct {
	r         registry
	client    *Client
	running   []submitting
	exists    map[ID]bool
	elsewhere []*Future
}

func (m *registryMachine) begin(t *rapid.T) {
	f := &Future{client: m.client, id: ID{rapid.Byte().Draw(t, "id") % 4}}
	sub := fdbmodel.Submission{ID: f.id, Spec: layout.Spec{Function: "go:f", Session: "s"}}
	m.r.expect([]*Future{f}, []fdbmodel.Submission{sub})
	m.running = append(m.running, submitting{handle: f})
}

func (m *registryMachine) notice(t *rapid.T) {
	id := ID{rapid.Byte().Draw(t, "id") % 4}
	m.r.deliver([]layout.Notice{{ID: id, State: layout.Realized, Result: &layout.Result{Value: []byte("v")}}})
	for i := range m.running {
		if m.running[i].handle.id == id {
			m.running[i].told = true
		}
	}
}

func (m *registryMachine) end(t *rapid.T) {
	if len(m.running) == 0 {
		t.Skip("none runs")
	}
	at := rapid.IntRange(0, len(m.running)-1).Draw(t, "submit")
	s := m.running[at]
	m.running = append(m.running[:at], m.running[at+1:]...)
	var answers []fdbmodel.Submitted
	made := false
	if rapid.Bool().Draw(t, "succeeds") {
		made = !m.exists[s.handle.id]
		m.exists[s.handle.id] = true
		answers = []fdbmodel.Submitted{{ID: s.handle.id, Existed: !made}}
	}
	m.r.confirm([]*Future{s.handle}, answers, func() {})
	switch {
	case !made:
		require.Nil(t, s.handle.entry, "no notice is promised")
	case s.told:
		require.NotNil(t, m.r.settledOf(s.handle), "the notice came while the submit was under way")
	default:
		require.True(t, s.handle.entry.told)
	}
}

// check requires that each entry has a way to its end, and that each handle has
// such an entry.
func (m *registryMachine) check(t *rapid.T) {
	under := map[ID]bool{}
	for _, s := range m.running {
		under[s.handle.id] = true
	}
	for id, e := range m.r.pending {
		require.True(t, under[id] || e.told || e.subscribed, "nothing ends %v", id)
	}
	for _, f := range m.elsewhere {
		require.True(t, f.entry.settled != nil || m.r.pending[f.id] == f.entry, "a handle is left behind")
	}
}

// TestNoticesAndSubmitsMeet compares the registry with the rule: whenever a
// notice comes, each handle either receives it or will ask.
func TestNoticesAndSubmitsMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := registryMachine{client: &Client{}, exists: map[ID]bool{}}
		m.r.init()
		t.Repeat(map[string]func(*rapid.T){
			"begin": m.begin, "notice": m.notice, "end": m.end, "": m.check,
			"elsewhere": func(t *rapid.T) {
				f := &Future{client: m.client, id: ID{rapid.Byte().Draw(t, "id") % 4}}
				m.r.doneOf(f, func() {})
				m.elsewhere = append(m.elsewhere, f)
			},
			"missing": func(t *rapid.T) {
				id := ID{rapid.Byte().Draw(t, "id") % 4}
				m.r.missing(id)
				for _, s := range m.running {
					if s.handle.id == id && !s.told && s.handle.entry.settled != nil {
						require.NotErrorIs(t, s.handle.entry.settled.Err, ErrNotFound, "a submit is under way")
					}
				}
			},
		})
	})
}

func TestAMadeFutureIsMissingTwice(t *testing.T) {
	t.Parallel()
	var r registry
	r.init()
	f := &Future{client: &Client{}, id: ID{1}}
	subs := []fdbmodel.Submission{{ID: f.id, Spec: layout.Spec{Session: "s"}}}
	r.expect([]*Future{f}, subs)
	r.confirm([]*Future{f}, []fdbmodel.Submitted{{ID: f.id}}, func() {})
	r.missing(f.id)
	require.Nil(t, r.settledOf(f), "the look may have come before the commit")
	require.Equal(t, []ID{f.id}, r.takeWanted())
	r.missing(f.id)
	require.ErrorIs(t, r.settledOf(f).Err, ErrNotFound)
}

func TestSubscribedEntryDoesNotSwallowTheSubmits(t *testing.T) {
	t.Parallel()
	var r registry
	r.init()
	c := &Client{}
	id := ID{1}
	elsewhere := &Future{client: c, id: id}
	r.doneOf(elsewhere, func() {})
	require.Equal(t, []ID{id}, r.takeWanted())
	submitted := &Future{client: c, id: id}
	r.expect([]*Future{submitted}, []fdbmodel.Submission{{ID: id, Spec: layout.Spec{Session: "s"}}})
	notice := layout.Notice{ID: id, State: layout.Realized, Result: &layout.Result{Value: []byte("once")}}
	require.Empty(t, r.deliver([]layout.Notice{notice}))
	require.NotNil(t, r.settledOf(elsewhere))
	r.confirm([]*Future{submitted}, []fdbmodel.Submitted{{ID: id}}, func() {})
	require.Equal(t, "once", string(r.settledOf(submitted).Result.Value))
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
	r.end(ID{2}, Settled{})
	r.leave(fs, waiters[0])
	require.Equal(t, []ID{{1}}, r.awaited())
	r.end(ID{1}, Settled{})
	require.False(t, groups[0].over(), "a group that left is told of nothing")
	require.True(t, groups[1].over())
	require.ElementsMatch(t, []int{0, 1, 2}, groups[1].take())
	r.leave(fs, waiters[1])
	require.Empty(t, r.awaited())
}
