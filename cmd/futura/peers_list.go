package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/protocol/peerhead"
)

// list is what the head tells clients of its peers.
func (p *peers) list() []rest.Peer {
	var all []rest.Peer
	listed := map[peerhead.PeerID]bool{} // one may go between
	for _, one := range append(p.Peers(), p.Lost()...) {
		if listed[one.ID] {
			continue
		}
		listed[one.ID] = true
		var moving []rest.PeerTransfer
		for _, t := range one.Transfers {
			moving = append(moving, rest.PeerTransfer(t))
		}
		all = append(all, rest.Peer{
			ID: string(one.ID), Worker: one.Worker, Name: one.Name, Dialect: one.Dialect, Connected: one.Connected,
			Slots: one.Slots, Orders: one.Orders, Items: one.Items, Done: one.Done, Failed: one.Failed,
			Refused: one.Refused, Disagreed: one.Disagreed, TakenBack: one.TakenBack, Score: one.Score, Limit: one.Limit,
			LatencyMS: one.Latency.Milliseconds(), Transfers: moving, Heard: one.Heard,
			LostAt: httpapi.TimeIfAny(one.LostAt), Reason: one.Reason, Left: one.Left,
		})
	}
	return all
}

func (a *app) peersCommand() *cobra.Command {
	f := headFlags{ofPeers: true}
	var page pageFlags
	cmd := &cobra.Command{
		Use: "peers", Short: "List the libp2p peers of a running head", Args: exactly(0),
		Long: "peers lists the libp2p peers that a head, or dev, with --peers knows: whether each is connected, how many " +
			"items it has of those that it takes, and what became of others. Refused are answers that changed nothing, of " +
			"items that it was not given or that were over; it disagreed about items of which other peers said something " +
			"else. The score is the part of what it was asked that it answered of late; one with less than 1 is given " +
			"fewer items at a time than it takes. One that is silent while it has work is dropped: it gets no work until " +
			"it speaks again. One that is away is lost after the time in which workers count as dead; it stays in the list " +
			"for an hour, or what --keep-lost of the head says, unless it comes back. The table has the end of long ids, and " +
			"--json has the whole ones and why work was taken from peers. Without --url " +
			"it asks the newest head of the store with peers that you run on this machine, whatever kind of store that is.",
		Example: "  futura peers\n  futura peers --url http://127.0.0.1:8080 --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect(&f)
			if err != nil {
				return err
			}
			rows := func(list *rest.PeerList) [][]string { return a.peerRows(list, time.Now()) }
			return printAnswer(a, cmd, c, http.MethodGet, "/api/v1/peers"+page.query(), nil, rows)
		},
	}
	f.add(cmd.Flags())
	page.add(cmd.Flags())
	return cmd
}

// peerRows are the rows of a page of peers.
func (a *app) peerRows(list *rest.PeerList, now time.Time) [][]string {
	if !list.Takes {
		fmt.Fprintln(a.err, "futura: this head takes no peers: start it with --peers")
	}
	rows := [][]string{{
		"PEER", "STATE", "SPEAKS", "ITEMS", "DONE", "FAILED", "REFUSED", "DISAGREED", "SCORE", "MOVING", "HEARD",
	}}
	for _, p := range list.Peers {
		items := fmt.Sprintf("%d/%d", p.Items, p.Slots)
		if p.Worker != "" && p.Limit < p.Slots {
			items = fmt.Sprintf("%d/%d of %d", p.Items, p.Limit, p.Slots)
		}
		rows = append(rows, []string{
			shortPeer(p.ID), peerState(&p, now), p.Dialect, items, strconv.FormatInt(p.Done, 10),
			strconv.FormatInt(p.Failed, 10), strconv.FormatInt(p.Refused, 10), strconv.FormatInt(p.Disagreed, 10),
			strconv.FormatFloat(p.Score, 'g', 2, 64), movingText(p.Transfers),
			max(now.Sub(p.Heard), 0).Round(time.Second).String(),
		})
	}
	return withMore(rows, list.Next)
}

// peerState says whether a peer is here, or since when it is not.
func peerState(p *rest.Peer, now time.Time) string {
	switch {
	case p.LostAt == nil && p.Connected && p.Worker == "" && p.Reason != "":
		return "dropped"
	case p.LostAt == nil && p.Connected:
		return "here"
	case p.LostAt == nil:
		return "away"
	}
	state, at := "lost", p.LostAt.Local()
	if p.Left {
		state = "left"
	}
	format := "15:04:05"
	if now.Sub(at) >= 12*time.Hour {
		format = "Jan _2 15:04"
	}
	return state + " since " + at.Format(format)
}

// movingText says how far the transfers of a peer are.
func movingText(all []rest.PeerTransfer) string {
	if len(all) == 0 {
		return "-"
	}
	var texts []string
	for _, t := range all {
		texts = append(texts, fmt.Sprintf("%s %d%%", t.What, percent(t.Done, t.Total)))
	}
	return strings.Join(texts, ", ")
}

// percent is how much done is of total.
func percent(done, total int64) int64 {
	if total <= 0 {
		return 100
	}
	return int64(float64(done) / float64(total) * 100)
}

// shortPeer is the end of a long peer id: ids of one kind of key begin alike.
func shortPeer(id string) string {
	const most = 8
	if len(id) <= most {
		return id
	}
	return "…" + id[len(id)-most+1:]
}
