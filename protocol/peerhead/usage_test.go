package peerhead_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/metering"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestUseOfPeersIsBounded has peers say what their items have used: more than can be, less
// than nothing, and the truth. What counts is no more than the head saw.
func TestUseOfPeersIsBounded(t *testing.T) {
	const second = int64(time.Second)
	for name, c := range map[string]struct {
		says protocol.Usage
		want metering.Metered
	}{
		"true": {protocol.Usage{WallClock: 2 * second, CPUUser: 3 * second, CPUSystem: second, MemoryMaxKB: 2},
			metering.Metered{RunTime: 2 * time.Second, CPU: 4 * time.Second, Memory: 2048}},
		"too much": {protocol.Usage{WallClock: math.MaxInt64, CPUUser: math.MaxInt64, CPUSystem: math.MaxInt64,
			MemoryMaxKB: math.MaxInt64}, metering.Metered{RunTime: 10 * time.Second, CPU: 20 * time.Second, Memory: 1 << 30}},
		"nothing": {protocol.Usage{}, metering.Metered{RunTime: 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, peerhead.Options{}, func(w *world) {
				p := w.join("p", 1, func(p *fakePeer) {
					p.takes = 10 * time.Second
					p.hello.Capacity.CPUMillis, p.hello.Capacity.RAMBytes = 2000, 1<<30
					p.run = func(o *protocol.WorkOrderBatch, i int) protocol.Outcome {
						x := echo(o, i)
						x.Usage = c.says
						return x
					}
				})
				ids := w.submit(1)
				w.settle(time.Minute)
				w.requireEchoes(ids)
				w.deliverTwice(p)
				var used []metering.Use
				now := w.cluster.Now()
				require.NoError(w, metering.Read(context.Background(), w.cluster, now, now, func(u *metering.Use) error {
					used = append(used, *u)
					return nil
				}))
				require.Len(w, used, 1)
				require.Equal(w, []string{metering.Peer, "p"}, []string{used[0].Kind, used[0].Name})
				want := c.want
				want.Items, want.In, want.Out = 1, 1, 1
				got := used[0].Metered
				require.InDelta(w, want.RunTime, got.RunTime, float64(time.Second/10))
				require.InDelta(w, want.CPU, got.CPU, float64(time.Second/5))
				got.RunTime, got.CPU = want.RunTime, want.CPU
				require.Equal(w, want, got)
			})
		})
	}
}

// TestTimedOutAttemptsAreBilled has a peer end an attempt that ran too long.
func TestTimedOutAttemptsAreBilled(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.join("p", 1, func(p *fakePeer) {
			p.takes = 10 * time.Second
			p.hello.Capacity.CPUMillis, p.hello.Capacity.RAMBytes = 2000, 1<<30
			p.run = func(o *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{
					Index: i, Code: protocol.CodeTimeout, Kind: string(layout.KindTimeout), Message: "it ran too long",
					Usage: protocol.Usage{WallClock: int64(3 * time.Second), CPUUser: int64(2 * time.Second), MemoryMaxKB: 2},
				}
			}
		})
		w.submit(1)
		w.settle(5 * time.Minute)
		now := w.cluster.Now()
		var used []metering.Use
		require.NoError(w, metering.Read(context.Background(), w.cluster, now, now, func(u *metering.Use) error {
			used = append(used, *u)
			return nil
		}))
		require.Len(w, used, 1)
		require.Equal(w, []int64{0, 1}, []int64{used[0].Items, used[0].Failed})
		require.Equal(w, 2*time.Second, used[0].CPU)
		require.Equal(w, int64(2048), used[0].Memory)
	})
}

// deliverTwice sends the results of a peer's orders again.
func (w *world) deliverTwice(p *fakePeer) {
	p.mu.Lock()
	orders := p.orders
	p.mu.Unlock()
	for _, o := range orders {
		r := &protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID, OrderMAC: o.OrderMAC}
		for i := range o.Items {
			r.Outcomes = append(r.Outcomes, echo(o, i))
		}
		p.tell(r)
	}
	w.settle(10 * time.Second)
}
