package peerhead_test

import (
	"testing"
	"time"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestAHeadEndsWhilePeersJoin has a head be ended while it registers a peer.
func TestAHeadEndsWhilePeersJoin(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		answers := w.stall()
		p := &fakePeer{world: w, id: "p", hello: protocol.Hello{
			Incarnation: "0123456789abcdef", Capacity: protocol.Capacity{Slots: 1}, Functions: []string{"go:f"},
		}}
		greeted := make(chan struct{})
		go func() {
			defer close(greeted)
			p.sayHello()
		}()
		w.settle(time.Second)
		go w.stop()
		w.settle(time.Second)
		answers()
		<-greeted
		w.stop()
	})
}
