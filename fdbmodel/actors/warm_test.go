package actors

import (
	"testing"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

func TestWarmStatesAreThoseThatWereWritten(t *testing.T) {
	t.Parallel()
	states, err := lru.New[Ref, State](10)
	require.NoError(t, err)
	warm := &Warm{states: states}
	state := func(key string, size int, version int64) State {
		return State{Ref: Ref{Type: "account", Key: key}, Head: Head{Version: version}, Value: make([]byte, size)}
	}
	kept := func(key string) int64 {
		s, _ := warm.Get(Ref{Type: "account", Key: key}, false)
		return s.Head.Version
	}
	warm.Keep([]State{state("a", 1, 1), state("large", maxWarmState+1, 1)}, 7)
	require.EqualValues(t, 1, kept("a"))
	require.Zero(t, kept("large"))
	warm.Keep([]State{state("a", 1, 3)}, 9)
	warm.Keep([]State{state("a", 1, 2)}, 8)
	require.EqualValues(t, 3, kept("a"), "an older one that comes late changes nothing")
	warm.Keep([]State{state("a", 1, 4)}, kv.NoVersion)
	require.Zero(t, kept("a"), "after a conflict, a lost claim or an unknown commit")
	warm.Keep([]State{state("a", 1, 1)}, 7)
	warm.Keep([]State{{Ref: Ref{Type: "account", Key: "a"}}}, 8)
	require.Zero(t, kept("a"), "it was deleted")
}

// TestWarmStatesThatMislead has another process change most of them: then they are read, but for some that
// find out when that is over.
func TestWarmStatesThatMislead(t *testing.T) {
	t.Parallel()
	states, err := lru.New[Ref, State](10)
	require.NoError(t, err)
	warm, r := &Warm{states: states}, Ref{Type: "account", Key: "a"}
	warm.Keep([]State{{Ref: r, Head: Head{Version: 1}}}, 7)
	uses := func(known bool) (n int) {
		for range 80 {
			if _, kept := warm.Get(r, known); kept {
				n++
			}
		}
		return n
	}
	for range 3 {
		warm.Learn(false)
	}
	require.Equal(t, 80, uses(false))
	for range 20 {
		warm.Learn(false)
	}
	require.Equal(t, 10, uses(false))
	require.Equal(t, 80, uses(true), "the turn before was made here")
	for range 40 {
		warm.Learn(true)
	}
	require.Equal(t, 80, uses(false))
}
