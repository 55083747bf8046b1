package rest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

const peersPath = "/api/v1/peers"

// Peer is a libp2p peer of the head that answers.
type Peer struct {
	ID      string `json:"id" doc:"Its libp2p peer id"`
	Worker  string `json:"worker,omitempty" doc:"The id of the worker that it is now; left out while it is none"`
	Name    string `json:"name,omitempty" doc:"What it calls itself, if the head trusts it"`
	Dialect string `json:"dialect" enum:"futura,chunk,strand,unknown" doc:"chunk and strand are b7s's"`
	// Connected is false for one that is away and has its grace.
	Connected bool  `json:"connected" doc:"False while it is away and may come back"`
	Slots     int   `json:"slots" doc:"How many items it takes at a time"`
	Orders    int   `json:"orders" doc:"How many orders it has, each with up to 256 items"`
	Items     int   `json:"items" doc:"How many items of those have not ended"`
	Done      int64 `json:"done" doc:"Items with a result, since the head met the peer"`
	Failed    int64 `json:"failed" doc:"Items that failed"`
	Refused   int64 `json:"refused" doc:"Outcomes that changed nothing: of items that it was not given, or that were over"`
	Disagreed int64 `json:"disagreed" doc:"Items about which it said something else than other peers"`
	TakenBack int64 `json:"taken_back" doc:"Items that it had not begun while others were idle, which got them"`
	// Score and Limit are of late.
	Score     float64        `json:"score" doc:"The part of what it was asked that it answered of late, from 0 to 1"`
	Limit     int            `json:"limit" doc:"How many items it is given at a time: of its slots, what its score allows"`
	LatencyMS int64          `json:"latency_ms" doc:"How long its answers take beside the runs, on average"`
	Transfers []PeerTransfer `json:"transfers,omitempty" doc:"Large values on their way; left out without any"`
	// Heard is when it last sent something.
	Heard time.Time `json:"heard_at" doc:"When it last sent something"`
	// LostAt is set for one that went.
	LostAt *time.Time `json:"lost_at,omitempty" doc:"Since when it is away, once it is lost"`
	Reason string     `json:"reason,omitempty" doc:"Why the head took its work from it, until it is a worker again"`
	Left   bool       `json:"left,omitempty" doc:"True if it said that it goes"`
}

// PeerTransfer is a large value on its way between a head and a peer.
type PeerTransfer struct {
	What  string    `json:"what" enum:"module,result" doc:"A module goes to the peer, a result comes from it"`
	Name  string    `json:"name" doc:"The content id of a module, or the id of the future"`
	Done  int64     `json:"done" doc:"Bytes that have come; 0 for a transfer that waits for its turn"`
	Total int64     `json:"total" doc:"Bytes in all"`
	Since time.Time `json:"since" doc:"When it began, or went on after a cut"`
}

// PeerList is a page of peers.
type PeerList struct {
	Takes bool   `json:"takes_peers" doc:"False for a head that takes none, which has no peers then"`
	Peers []Peer `json:"peers"`
	Next  string `json:"next,omitempty" doc:"What to send as after for the next page; left out at the end"`
}

// peerBytes is what a peer holds in memory, at most.
const peerBytes = 4 << 10

// registerPeers adds the list of peers.
func (s *server) registerPeers() {
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: s.listPeers, Out: PeerList{},
		Operation: operation(http.MethodGet, peersPath, "peers", "list-peers", "List the peers of this head",
			"The libp2p peers that it knows, by their ids. Another head has peers of its own; all of them are workers "+
				"of the cluster. The figures begin anew with the head's process. A worker that went stays in the list for "+
				"an hour, or what the head's --keep-lost says, with lost_at, at most 500 of them; it goes on with its figures "+
				"if it comes back by then.",
			parameter("query", "limit", "integer", "1 to 500. Default 100"),
			parameter("query", "after", "string", "The next of the previous page: an id, whose peer may be gone")),
	})
}

// listPeers returns a page of peers.
func (s *server) listPeers(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 100, 1, MaxPage)
	if err != nil {
		return err
	}
	list := PeerList{Takes: s.options.Peers != nil, Peers: []Peer{}}
	if !list.Takes {
		return stack.WriteJSON(w, http.StatusOK, list)
	}
	all := s.options.Peers()
	if err := stack.Reserve(r.Context(), int64(min(len(all), limit))*peerBytes); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b Peer) int { return strings.Compare(a.ID, b.ID) })
	after := r.URL.Query().Get("after")
	begin, found := slices.BinarySearchFunc(all, after, func(p Peer, id string) int { return strings.Compare(p.ID, id) })
	if found {
		begin++
	}
	all = all[begin:]
	for _, p := range all[:min(limit, len(all))] {
		p.Heard = p.Heard.UTC()
		list.Peers = append(list.Peers, p)
	}
	if len(all) > limit {
		list.Next = all[limit-1].ID
	}
	return stack.WriteJSON(w, http.StatusOK, list)
}
