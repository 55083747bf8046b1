package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/protocol/peerworker"
)

// transferLines says how far large values are that take a while, a line each second.
type transferLines struct {
	app *app

	mu sync.Mutex
	by map[transferName]*transferTold
}

type transferName struct{ what, content, head string }

type transferTold struct{ began, told time.Time }

// maxTold bounds the transfers that are remembered: one that is cut off may never end.
const maxTold = 1000

func (l *transferLines) tell(t peerworker.Transfer) { l.tellAt(t, time.Now()) }

func (l *transferLines) tellAt(t peerworker.Transfer, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := transferName{t.What, t.Content, t.Head}
	told := l.by[name]
	if told == nil {
		if l.by == nil || len(l.by) >= maxTold {
			l.by = map[transferName]*transferTold{}
		}
		told = &transferTold{now, now}
		l.by[name] = told
	}
	over := t.Done >= t.Total
	if over {
		delete(l.by, name)
	}
	if now.Sub(told.told) < time.Second && !(over && told.told.After(told.began)) {
		return
	}
	told.told = now
	way := "comes from"
	if t.What == peerworker.TransferResult {
		way = "goes to"
	}
	fmt.Fprintf(l.app.err, "%s %s %s %s: %s\n", t.What, shortPeer(t.Content), way, shortPeer(t.Head),
		progressLine(t.Done, t.Total, "bytes"))
}
