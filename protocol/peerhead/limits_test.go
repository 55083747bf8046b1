package peerhead_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestLimitsOfOwners has peers run futures of two owners with limits. One that keeps the
// limits is given many of each at a time, with the limit, and others are given as many as
// may run.
func TestLimitsOfOwners(t *testing.T) {
	for name, keeps := range map[string]bool{"a peer that keeps them": true, "a peer that does not": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, peerhead.Options{}, func(w *world) {
				largest, requests := map[uint64]int{}, map[uint64]map[string]bool{1: {}, 3: {}}
				w.join("p", 8, func(p *fakePeer) {
					p.hello.Limits = keeps
					p.run = func(m *protocol.WorkOrderBatch, i int) protocol.Outcome {
						w.mu.Lock()
						defer w.mu.Unlock()
						largest[m.Concurrency] = max(largest[m.Concurrency], len(m.Items))
						if m.Concurrency > 0 {
							requests[m.Concurrency][m.RequestID] = true
						}
						return echo(m, i)
					}
				})
				var ids [][]layout.ID
				for owner, limit := range map[string]int{"a": 1, "b": 3} {
					ids = append(ids, w.submit(100, func(s *layout.Spec) { s.Owner, s.Parallel = owner, limit }))
				}
				to := fdbmodel.Assignment{To: layout.WorkerID(w.head.Peers()[0].Worker)}
				for _, of := range ids {
					_, err := w.cluster.Assign(t.Context(), to, of)
					require.NoError(w, err)
				}
				w.settle(time.Minute)
				for _, of := range ids {
					w.requireEchoes(of)
				}
				require.Zero(w, w.head.Peers()[0].Refused)
				if !keeps {
					require.LessOrEqual(w, largest[0], 1+3)
					require.Len(w, largest, 1)
					return
				}
				for limit, of := range requests {
					require.Len(w, of, 1, limit)
					require.Greater(w, largest[limit], 8)
				}
			})
		})
	}
}
