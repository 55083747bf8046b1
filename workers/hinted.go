package workers

import (
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/workers/objects/hints"
	"github.com/futura-run/futura/workers/objects/peer"
)

// hinted is what a worker does with the hints of other processes.
type hinted struct{ cluster *fdbmodel.Cluster }

// Hint implements peer.Hints.
func (h hinted) Hint(message []byte, n int) (heeded int) {
	return h.cluster.Notifier().Hinted(message, n)
}

// Listen implements peer.Hints.
func (h hinted) Listen(who peer.Owner, news func()) (stop func()) {
	session := hints.SessionOf(who)
	if session == "" {
		return func() {}
	}
	return mailbox.Open(h.cluster, session).Hear(news)
}
