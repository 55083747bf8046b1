package rest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
)

type peerList struct {
	Takes bool `json:"takes_peers"`
	Peers []rest.Peer
	Next  string
}

// TestPeersAreListed reads the peers of a head in pages, while the one that a page ends
// with is forgotten.
func TestPeersAreListed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	present := []rest.Peer{{ID: "c"}, {ID: "a", Worker: "w", Name: "n", Dialect: "futura", Connected: true, Slots: 4,
		Orders: 1, Items: 2, Done: 3, Failed: 5, Refused: 6, Disagreed: 7, TakenBack: 9, Score: 0.5, Limit: 1,
		LatencyMS: 8, Heard: at}, {ID: "b"}}
	f := newFixture(t, rest.Options{Peers: func() []rest.Peer { return append([]rest.Peer{}, present...) }})
	var list peerList
	f.send("GET", "/api/v1/peers?limit=2", "").Into(200, &list)
	require.True(t, list.Takes)
	want := present[1]
	want.Heard = at.UTC()
	require.Equal(t, []rest.Peer{want, {ID: "b"}}, list.Peers)
	require.Equal(t, "b", list.Next)
	present = present[:2]
	list = peerList{}
	f.send("GET", "/api/v1/peers?limit=2&after=b", "").Into(200, &list)
	require.Equal(t, peerList{Takes: true, Peers: []rest.Peer{{ID: "c"}}}, list)
	f.send("GET", "/api/v1/peers?after=z", "").Into(200, &list)
	require.Empty(t, list.Peers)
	for _, wrong := range []string{"limit=0", "limit=501", "limit=x"} {
		f.send("GET", "/api/v1/peers?"+wrong, "").Problem(400, "bad_request", "limit")
	}
}

func TestAHeadMayTakeNoPeers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	var list peerList
	answer := f.send("GET", "/api/v1/peers", "")
	answer.Into(200, &list)
	require.Equal(t, peerList{Peers: []rest.Peer{}}, list, fmt.Sprint(answer))
}
