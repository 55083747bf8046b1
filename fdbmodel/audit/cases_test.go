package audit_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// breakage is a raw write into a healthy cluster, and the invariant that a
// check reports.
type breakage struct {
	name string
	want []audit.Invariant
	how  func(*testing.T, *modeltest.Population, kv.Tx)
}

func only(i audit.Invariant) []audit.Invariant { return []audit.Invariant{i} }

// breakRow are writes into the rows of futures.
var breakRow = []breakage{
	{"spec gone", []audit.Invariant{layout.PlaceReady, audit.InvariantSpec},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts), []byte{layout.RecordVersion, 0x80})
			tx.Clear(p.C.Keys().Spec(p.IDs[layout.Ready]))
		}},
	{"ready key gone", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Ready(p.IDs[layout.Ready], p.Row(t, layout.Ready).Spec))
	}},
	{"ready key elsewhere", []audit.Invariant{layout.PlaceReady, layout.PlaceReady},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			spec := *p.Row(t, layout.Ready).Spec
			tx.Clear(p.C.Keys().Ready(p.IDs[layout.Ready], &spec))
			spec.Priority = 7
			tx.Set(p.C.Keys().Ready(p.IDs[layout.Ready], &spec), []byte("go:f"))
		}},
	{"ready key twice", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		spec := *p.Row(t, layout.Ready).Spec
		spec.Requirements.CPU = 1
		tx.Set(p.C.Keys().Ready(p.IDs[layout.Ready], &spec), []byte("go:f"))
	}},
	{"ready key of another function", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.IDs[layout.Ready], p.Row(t, layout.Ready).Spec), []byte("go:g"))
	}},
	{"held key gone", only(layout.PlaceHeld), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		row := p.Get(t, p.Held[0])
		tx.Clear(p.C.Keys().Held(&row))
	}},
	{"held and in the pool", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.Held[0], p.Get(t, p.Held[0]).Spec), []byte("go:f"))
	}},
	{"held key of an assigned one", only(layout.PlaceHeld), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		row := p.Get(t, p.Held[1])
		tx.Set(p.C.Keys().Held(&row), []byte("go:f"))
	}},
	{"held key without a future", only(layout.PlaceHeld), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		row := p.Get(t, p.Held[0])
		row.ID[0]++
		tx.Set(p.C.Keys().Held(&row), []byte("go:f"))
	}},
	{"assignment gone", only(layout.PlaceAssigned), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Assigned(p.Worker.ID(), p.Held[1], p.Get(t, p.Held[1]).Spec))
	}},
	{"assignment to another", []audit.Invariant{layout.PlaceAssigned, layout.PlaceAssigned},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Assigned("another", p.Held[1], p.Get(t, p.Held[1]).Spec), []byte("go:f"))
		}},
	{"assignment of another function", only(layout.PlaceAssigned),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Assigned(p.Worker.ID(), p.Held[1], p.Get(t, p.Held[1]).Spec), []byte("go:g"))
		}},
	{"assignment to a worker without its mark", only(layout.PlaceAssigned),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().Worker(p.Worker.ID(), layout.WorkerAssigned))
		}},
	{"assignment that is none", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().AssignedTo(p.Worker.ID()), "q"), []byte("go:f"))
	}},
	{"group that is none", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().OwnerWake("g"), "x"), []byte("go:f"))
	}},
	{"batch that is not listed", only(audit.InvariantBatch), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().BatchAt(7, "b"))
	}},
	{"batch gone", []audit.Invariant{audit.InvariantBatch, audit.InvariantBatch},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().BatchRecord("b"))
		}},
	{"listed batch that is none", only(audit.InvariantBatch), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().BatchAt(8, "another"), nil)
	}},
	{"batch key that is none", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().Batch("b"), "x"), nil)
	}},
	{"delayed key gone", only(layout.PlaceDelayed), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Delayed(p.IDs[layout.Delayed], p.Row(t, layout.Delayed).Attempts.Due))
	}},
	{"delayed elsewhere", []audit.Invariant{layout.PlaceDelayed, layout.PlaceDelayed},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			due := p.Row(t, layout.Delayed).Attempts.Due
			tx.Clear(p.C.Keys().Delayed(p.IDs[layout.Delayed], due))
			tx.Set(p.C.Keys().Delayed(p.IDs[layout.Delayed], due+1), nil)
		}},
	{"delayed and ready", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.IDs[layout.Delayed], p.Row(t, layout.Delayed).Spec), []byte("go:f"))
	}},
	{"claimed and ready", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.IDs[layout.Claimed], p.Row(t, layout.Claimed).Spec), []byte("go:f"))
	}},
	{"realized and delayed", only(layout.PlaceDelayed), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Delayed(p.IDs[layout.Realized], 5), nil)
	}},
	{"failed and ready", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.IDs[layout.Failed], p.Row(t, layout.Failed).Spec), []byte("go:f"))
	}},
	{"ready key without a future", only(layout.PlaceReady), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		id := p.IDs[layout.Ready]
		id[0]++
		tx.Set(p.C.Keys().Ready(id, p.Row(t, layout.Ready).Spec), []byte("go:f"))
	}},
	{"delayed key without a future", only(layout.PlaceDelayed), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		id := p.IDs[layout.Ready]
		id[0]++
		tx.Set(p.C.Keys().Delayed(id, 5), nil)
	}},
	{"claim in no list", only(audit.InvariantClaim), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Claims(p.Claim.Worker, p.Claim.Sequence))
	}},
	{"claim in a list without it", only(audit.InvariantClaim), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		batch := layout.ClaimBatch{IDs: layout.PackIDs([]layout.ID{p.IDs[layout.Ready]})}
		tx.Set(p.C.Keys().Claims(p.Claim.Worker, p.Claim.Sequence), layout.Encode(&batch))
	}},
	{"claim of a worker that never was", only(audit.InvariantClaim),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			claim := &layout.Claim{Token: layout.Token{Worker: "nobody", Sequence: 1}}
			tx.Set(p.C.Keys().State(p.IDs[layout.Claimed], layout.StateClaim), layout.EncodeStamped(claim))
		}},
	{"result of a failed future", only(audit.InvariantResult), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Failed], layout.StateResult),
			layout.EncodeStamped(&layout.Result{Token: p.Claim, Attempt: 1}))
	}},
	{"result of an attempt that was not", only(audit.InvariantResult),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			result := *p.Row(t, layout.Realized).Result
			result.Attempt = 2
			tx.Set(p.C.Keys().State(p.IDs[layout.Realized], layout.StateResult), layout.EncodeStamped(&result))
		}},
	{"realized with a final exception", only(audit.InvariantException),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			e := &layout.Exception{Kind: layout.KindError, Final: true}
			tx.Set(p.C.Keys().State(p.IDs[layout.Realized], layout.StateException), layout.Encode(e))
		}},
	{"failed before its last attempt", only(audit.InvariantException),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			spec := *p.Row(t, layout.Failed).Spec
			spec.MaxRetries = 1
			tx.Set(p.C.Keys().Spec(p.IDs[layout.Failed]), layout.Encode(&spec))
		}},
	{"lost without crashes", only(audit.InvariantException), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Failed], layout.StateException), layout.Encode(&layout.Exception{
			Kind: layout.KindLost, Final: true, At: p.Row(t, layout.Failed).Exception.At,
		}))
	}},
	{"too many attempts", only(audit.InvariantAttempts), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Failed], layout.StateAttempts),
			layout.Encode(&layout.Attempts{Failed: 9}))
	}},
	{"memory that grew for no reason", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Claimed], layout.StateAttempts), layout.Encode(&layout.Attempts{RAM: 9}))
		}},
	{"left to a worker for no time", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Claimed], layout.StateAttempts), layout.Encode(&layout.Attempts{Near: "w"}))
		}},
	{"unplaceable from nothing", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Claimed], layout.StateAttempts),
				layout.Encode(&layout.Attempts{Unplaceable: true}))
		}},
	{"near what is no input", only(audit.InvariantEdge),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			spec := *p.Row(t, layout.Claimed).Spec
			spec.Near, spec.MustBeNear = p.Large, true
			tx.Set(p.C.Keys().Spec(p.IDs[layout.Claimed]), layout.Encode(&spec))
		}},
	{"attempts without an exception", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			spec := *p.Row(t, layout.Ready).Spec
			spec.MaxRetries = 3
			tx.Set(p.C.Keys().Spec(p.IDs[layout.Ready]), layout.Encode(&spec))
			tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts),
				layout.Encode(&layout.Attempts{Failed: 1}))
		}},
	{"more failed attempts than allowed, and not over", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts), layout.Encode(&layout.Attempts{Failed: 1}))
			tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateException),
				layout.Encode(&layout.Exception{Kind: layout.KindError, Attempt: 1}))
		}},
	{"too many crashes", only(audit.InvariantAttempts), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts),
			layout.Encode(&layout.Attempts{Crashes: fdbmodel.MaxCrashes + 1}))
	}},
	{"crashes without deaths", only(audit.InvariantAttempts), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts), layout.Encode(&layout.Attempts{Crashes: 1}))
	}},
	{"a worker that runs what it does not hold", only(audit.InvariantClaim),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Suspect(p.Worker.ID(), p.IDs[layout.Claimed]),
				layout.Encode(&layout.SuspectRecord{Sequence: p.Claim.Sequence + 1}))
		}},
	{"negative number of failed attempts", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts), layout.Encode(&layout.Attempts{Failed: -1}))
		}},
	{"negative number of crashes", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts), layout.Encode(&layout.Attempts{Crashes: -1}))
		}},
	{"negative count", only(audit.InvariantAttempts), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Ready], layout.StateAttempts),
			layout.Encode(&layout.Attempts{Rejected: -1}))
	}},
	{"reject by more than it counts", only(audit.InvariantAttempts),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().State(p.IDs[layout.Claimed], layout.StateAttempts), layout.Encode(&layout.Attempts{
				Rejected: 1, Refused: layout.Refusals{{Worker: "v", At: 1, Until: 2}, {Worker: "w", At: 2, Until: 3}}}))
		}},
	{"claimed with a due time", only(audit.InvariantAttempts), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Claimed], layout.StateAttempts),
			layout.Encode(&layout.Attempts{Due: 5}))
	}},
	{"realized and asked to stop", only(audit.InvariantCancel), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Realized], layout.StateCancel),
			layout.Encode(&layout.CancelRequest{At: 1}))
	}},
	{"arguments gone", only(audit.InvariantArgs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Args(p.Middle))
	}},
	{"arguments cut", only(audit.InvariantArgs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Args(p.Middle), []byte("short"))
	}},
	{"arguments of nobody", only(audit.InvariantArgs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Args(p.IDs[layout.Ready]), []byte("x"))
	}},
	{"arguments in two places", only(audit.InvariantArgs), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		spec := *p.Get(t, p.Middle).Spec
		spec.Args = []byte("x")
		tx.Set(p.C.Keys().Spec(p.Middle), layout.Encode(&spec))
	}},
	{"large arguments in two places", only(audit.InvariantArgs),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			spec := *p.Get(t, p.Large).Spec
			spec.Args = []byte("x")
			tx.Set(p.C.Keys().Spec(p.Large), layout.Encode(&spec))
		}},
	{"state changed and the counters not", []audit.Invariant{audit.InvariantCounts, audit.InvariantCounts},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			row := p.Row(t, layout.Ready)
			tx.Clear(p.C.Keys().Ready(row.ID, row.Spec))
			tx.Set(p.C.Keys().Delayed(row.ID, 5), nil)
			tx.Set(p.C.Keys().State(row.ID, layout.StateAttempts), layout.Encode(&layout.Attempts{Due: 5}))
		}},
	{"finished and not in the done list", []audit.Invariant{audit.InvariantDone},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			id := p.IDs[layout.Realized]
			for shard := range p.C.Keys().Shards {
				r := kv.Prefix(p.C.Keys().DoneOf(shard))
				page, err := tx.GetRange(r, kv.RangeOptions{}).Wait(context.Background())
				require.NoError(t, err)
				for _, item := range page.Items {
					if bytes.Contains(item.Value, id[:]) {
						tx.Clear(item.Key)
					}
				}
			}
		}},
	{"finished after its entry in the done list", only(audit.InvariantDone),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			result := *p.Row(t, layout.Realized).Result
			result.At++
			tx.Set(p.C.Keys().State(p.IDs[layout.Realized], layout.StateResult), layout.EncodeStamped(&result))
		}},
	{"row that can't be read", only(audit.InvariantRecord), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Spec(p.IDs[layout.Claimed]), []byte{layout.RecordVersion, 0xc1})
	}},
	{"unknown part of a future", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().Row(p.IDs[layout.Ready]), "what"), nil)
	}},
	{"unknown part of a future's state", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.IDs[layout.Ready], "what"), nil)
	}},
	{"a part below a part", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(tuple.AppendInt(p.C.Keys().Spec(p.IDs[layout.Ready]), 1), nil)
	}},
	{"future in another shard", only(audit.InvariantKey), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		row := p.Row(t, layout.Ready)
		shard := (row.ID.Shard(p.C.Keys().Shards) + 1) % p.C.Keys().Shards
		key := tuple.AppendString(tuple.AppendUUID(p.C.Keys().Shard(shard, layout.SubFutures), row.ID), layout.RowSpec)
		tx.Set(key, layout.Encode(row.Spec))
	}},
}

// breakRest are writes outside of the rows.
var breakRest = []breakage{
	{"piece of a result gone", only(audit.InvariantChunks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Chunk(p.Large, p.Result, 1))
	}},
	{"piece of arguments cut", only(audit.InvariantChunks), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Chunk(p.Large, p.Args, 1), []byte("short"))
	}},
	{"number of pieces off", only(audit.InvariantChunks), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		result, ref := *p.Get(t, p.Large).Result, p.Result
		ref.Count--
		result.ValueRef = &ref
		tx.Set(p.C.Keys().State(p.Large, layout.StateResult), layout.EncodeStamped(&result))
	}},
	{"piece with a negative number", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Chunk(p.Large, p.Result, -1), nil)
	}},
	{"priority below 0", only(audit.InvariantKey), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		class := tuple.AppendInt(tuple.AppendInt(tuple.AppendInt(p.C.Keys().ReadyQueue(0, "q"), 0), 0), 0)
		for id := (layout.ID{}); ; id[0]++ {
			if id.Shard(p.C.Keys().Shards) == 0 {
				tx.Set(tuple.AppendUUID(tuple.AppendInt(class, layout.MaxPriority+1), id), nil)
				return
			}
		}
	}},
	{"piece without a number", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Chunks(p.Large, p.Result), nil)
	}},
	{"counter off", only(audit.InvariantCounts), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		shard := p.IDs[layout.Ready].Shard(p.C.Keys().Shards)
		tx.Atomic(kv.Add, p.C.Keys().Count(shard, layout.DefaultQueue, "", layout.Ready), layout.EncodeCounter(1))
	}},
	{"counter gone", only(audit.InvariantCounts), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Count(p.IDs[layout.Delayed].Shard(p.C.Keys().Shards), layout.DefaultQueue, "", layout.Delayed))
	}},
	{"counter of nobody", only(audit.InvariantCounts), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Atomic(kv.Add, p.C.Keys().Count(0, "nobody", "", layout.Ready), layout.EncodeCounter(-1))
	}},
	{"counter of assigned futures off", only(audit.InvariantCounts),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Atomic(kv.Add, p.C.Keys().OwnerOpen("g", "c"), layout.EncodeCounter(1))
		}},
	{"counter of assigned futures gone", only(audit.InvariantCounts),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().OwnerOpen("g", "c"))
		}},
	{"counter of assigned futures of nobody", only(audit.InvariantCounts),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().OwnerOpen("nobody", "c"), layout.EncodeCounter(2))
		}},
	{"counter that is none", only(audit.InvariantRecord), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Count(0, "nobody", "", layout.Ready), []byte("x"))
	}},
	{"done list that can't be read", only(audit.InvariantRecord), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		key := tuple.AppendStamp(p.C.Keys().DoneOf(3), [10]byte{}, 0)
		tx.Set(key, layout.Encode(&layout.DoneEntry{IDs: []byte("x")}))
	}},
	{"mail without a wake key", only(audit.InvariantMail), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().SessionWake("s"))
	}},
	{"mail that can't be read", only(audit.InvariantRecord), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(tuple.AppendStamp(p.C.Keys().Mailbox("s"), [10]byte{}, 0), []byte{layout.RecordVersion, 0, 0, 0, 1})
	}},
	{"mail about nothing that ended", only(audit.InvariantMail), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		notice := layout.AppendNotice(nil, &layout.Notice{ID: p.IDs[layout.Ready], State: layout.Ready})
		tx.Set(tuple.AppendStamp(p.C.Keys().Mailbox("s"), [10]byte{}, 0), layout.MailValue(notice, 1))
	}},
	{"session that can't be read", only(audit.InvariantRecord), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Session("s"), []byte{layout.RecordVersion})
	}},
	{"heartbeat of nobody", only(audit.InvariantWorker), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Worker("gone", layout.WorkerHeartbeat), layout.Encode(&layout.Heartbeat{}))
	}},
	{"worker without a heartbeat", only(audit.InvariantWorker), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Worker(p.Worker.ID(), layout.WorkerHeartbeat))
	}},
	{"worker without its address", only(audit.InvariantWorker), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Address("10.0.0.1:1"))
	}},
	{"address that leads to another", []audit.Invariant{audit.InvariantAddress, audit.InvariantWorker},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Address("10.0.0.1:1"), []byte("gone"))
		}},
	{"idle and dead", only(audit.InvariantIdle), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Idle(layout.DefaultQueue, "gone"), layout.Encode(&layout.IdleRecord{}))
	}},
	{"idle in a queue of others", only(audit.InvariantIdle), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Idle("others", p.Worker.ID()), layout.Encode(&layout.IdleRecord{}))
	}},
	{"address of nobody", only(audit.InvariantAddress), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Address("10.0.0.2:1"), []byte("gone"))
	}},
	{"second address of a worker", only(audit.InvariantAddress), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Address("10.0.0.2:1"), []byte(p.Worker.ID()))
	}},
	{"claims that can't be read", only(audit.InvariantRecord), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Claims(p.Worker.ID(), 99), []byte{layout.RecordVersion})
	}},
	{"unknown part of a worker", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Worker(p.Worker.ID(), "what"), nil)
	}},
	{"alias of no module", only(audit.InvariantAlias), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Alias("lost"), layout.Encode(&layout.AliasRecord{CID: "bafk"}))
	}},
	{"piece of a module gone", only(audit.InvariantModule), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		cid, err := modules.CID([]byte("not really a module"))
		require.NoError(t, err)
		tx.Clear(p.C.Keys().ModulePiece(cid, 0))
	}},
	{"pieces of a module misnumbered", only(audit.InvariantModule),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			module := []byte("not really a module")
			cid, err := modules.CID(module)
			require.NoError(t, err)
			tx.Clear(p.C.Keys().ModulePiece(cid, 0))
			tx.Set(p.C.Keys().ModulePiece(cid, 1), module)
		}},
	{"config gone", only(audit.InvariantConfig), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Config())
	}},
	{"config of others", only(audit.InvariantConfig), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		config := p.C.Config()
		config.Shards *= 2
		tx.Set(p.C.Keys().Config(), layout.Encode(&config))
	}},
	{"config of another format", only(audit.InvariantConfig), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		config := p.C.Config()
		config.Format++
		tx.Set(p.C.Keys().Config(), layout.Encode(&config))
	}},
	{"config out of bounds", only(audit.InvariantConfig), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		config := p.C.Config()
		config.Heartbeat = -1
		tx.Set(p.C.Keys().Config(), layout.Encode(&config))
	}},
	{"janitor that can't be read", only(audit.InvariantRecord), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Janitor(), []byte{0})
	}},
	{"unknown key", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Global("what"), nil)
	}},
	{"unknown key of a shard", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Shard(3, "what"), nil)
	}},
	{"a shard too many", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().DoneOf(p.C.Keys().Shards), nil)
	}},
	{"a shard below 0", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().DoneOf(-1), nil)
	}},
	{"no tuple", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(append(p.C.Keys().All().Begin, 0xfe), nil)
	}},
}
