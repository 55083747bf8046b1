package peerhead

import "log/slog"

// maxNamed bounds the futures that one line names.
const maxNamed = 20

// logTaken says which futures a peer has in a chunk, and of which owner, as of a batch: a peer's
// lines name its chunks and futures.
func (o *order) logTaken() {
	logger := o.member.peer.head.options.Logger
	if !logger.Enabled(o.member.ctx, slog.LevelDebug) {
		return
	}
	logger.Debug("a peer has taken an order", "peer", o.member.peer.id, "chunk", o.id, "items", len(o.calls),
		"owner", o.calls[0].Owner, "futures", o.named(nil))
}

// named are the futures at places of an order, at all if there are none, for a line.
func (o *order) named(places []int) (ids []string) {
	if places == nil {
		for i := range o.calls[:min(len(o.calls), maxNamed)] {
			places = append(places, i)
		}
	}
	for _, i := range places[:min(len(places), maxNamed)] {
		ids = append(ids, o.calls[i].ID.String())
	}
	return ids
}
