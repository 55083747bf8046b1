package peerhead_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// TestAPeerThatGoesWhileItJoins has a peer be away for longer than its grace while the store registers it, and come
// back: it has one membership, which the head knows.
func TestAPeerThatGoesWhileItJoins(t *testing.T) {
	for name, back := range map[string]bool{"for good": false, "and comes back": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, peerhead.Options{}, func(w *world) {
				answers := w.stall()
				joined := make(chan *fakePeer, 1)
				go func() { joined <- w.meet("p", 8) }()
				w.settle(time.Second)
				w.peer("p").setAway(true)
				w.settle(10 * time.Second)
				if back {
					w.peer("p").setAway(false)
				}
				answers()
				p := <-joined
				if back {
					require.Equal(w, protocol.CodeOK, p.sayHello().Code)
					w.head.Prove(p.id)
					ids := w.submit(16)
					w.settle(10 * time.Second)
					w.requireEchoes(ids)
				} else {
					w.settle(10 * time.Second)
				}
				alive := 0
				all, err := w.cluster.Workers(context.Background())
				require.NoError(w, err)
				for i := range all {
					if all[i].Alive {
						alive++
					}
				}
				require.Len(w, w.head.Peers(), alive)
				require.Equal(w, back, alive == 1)
			})
		})
	}
}

// TestAHeadEndsThoughItsStoreIsSilent has a peer be lost while the store does not answer, and the head be ended then.
func TestAHeadEndsThoughItsStoreIsSilent(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 1)
		w.settle(time.Second)
		answers := w.stall()
		p.setAway(true)
		w.settle(10 * time.Second)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.stop()
		}()
		w.settle(2 * time.Minute)
		select {
		case <-ended:
		default:
			t.Error("the head waits for its store")
		}
		answers()
		<-ended
	})
}
