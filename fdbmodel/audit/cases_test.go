package audit

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// breakage is a raw write into a healthy cluster, and what a check calls it.
type breakage struct {
	name string
	want []Invariant
	how  func(*testing.T, *Population, kv.Tx)
}

func only(i Invariant) []Invariant { return []Invariant{i} }

// breakRow are writes into the rows of futures.
var breakRow = []breakage{
	{"spec gone", []Invariant{InvariantReady, InvariantSpec}, func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Ready], layout.StateAttempts), []byte{layout.RecordVersion, 0x80})
		tx.Clear(p.C.Keys().Spec(p.Ids[layout.Ready]))
	}},
	{"ready key gone", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Ready(p.Ids[layout.Ready], p.Row(t, layout.Ready).Spec))
	}},
	{"ready key elsewhere", []Invariant{InvariantReady, InvariantReady}, func(t *testing.T, p *Population, tx kv.Tx) {
		spec := *p.Row(t, layout.Ready).Spec
		tx.Clear(p.C.Keys().Ready(p.Ids[layout.Ready], &spec))
		spec.Priority = 7
		tx.Set(p.C.Keys().Ready(p.Ids[layout.Ready], &spec), []byte("go:f"))
	}},
	{"ready key twice", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		spec := *p.Row(t, layout.Ready).Spec
		spec.Requirements.CPU = 1
		tx.Set(p.C.Keys().Ready(p.Ids[layout.Ready], &spec), []byte("go:f"))
	}},
	{"ready key of another function", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.Ids[layout.Ready], p.Row(t, layout.Ready).Spec), []byte("go:g"))
	}},
	{"held key gone", only(InvariantHeld), func(t *testing.T, p *Population, tx kv.Tx) {
		row := p.get(t, p.held[0])
		tx.Clear(p.C.Keys().Held(&row))
	}},
	{"held and in the pool", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.held[0], p.get(t, p.held[0]).Spec), []byte("go:f"))
	}},
	{"held key of an assigned one", only(InvariantHeld), func(t *testing.T, p *Population, tx kv.Tx) {
		row := p.get(t, p.held[1])
		tx.Set(p.C.Keys().Held(&row), []byte("go:f"))
	}},
	{"held key without a future", only(InvariantHeld), func(t *testing.T, p *Population, tx kv.Tx) {
		row := p.get(t, p.held[0])
		row.ID[0]++
		tx.Set(p.C.Keys().Held(&row), []byte("go:f"))
	}},
	{"assignment gone", only(InvariantAssigned), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Assigned(p.Worker.ID(), p.held[1], p.get(t, p.held[1]).Spec))
	}},
	{"assignment to another", []Invariant{InvariantAssigned, InvariantAssigned},
		func(t *testing.T, p *Population, tx kv.Tx) {
			tx.Set(p.C.Keys().Assigned("another", p.held[1], p.get(t, p.held[1]).Spec), []byte("go:f"))
		}},
	{"assignment of another function", only(InvariantAssigned), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Assigned(p.Worker.ID(), p.held[1], p.get(t, p.held[1]).Spec), []byte("go:g"))
	}},
	{"assignment to a worker without its mark", only(InvariantAssigned), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Worker(p.Worker.ID(), layout.WorkerAssigned))
	}},
	{"assignment that is none", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().AssignedTo(p.Worker.ID()), "q"), []byte("go:f"))
	}},
	{"group that is none", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().GroupBell("g"), "x"), []byte("go:f"))
	}},
	{"batch that is not listed", only(InvariantBatch), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().BatchAt(7, "b"))
	}},
	{"batch gone", []Invariant{InvariantBatch, InvariantBatch}, func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().BatchRecord("b"))
	}},
	{"batch key that is none", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().Batch("b"), "x"), nil)
	}},
	{"delayed key gone", only(InvariantDelayed), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Delayed(p.Ids[layout.Delayed], p.Row(t, layout.Delayed).Attempts.Due))
	}},
	{"delayed elsewhere", []Invariant{InvariantDelayed, InvariantDelayed}, func(t *testing.T, p *Population, tx kv.Tx) {
		due := p.Row(t, layout.Delayed).Attempts.Due
		tx.Clear(p.C.Keys().Delayed(p.Ids[layout.Delayed], due))
		tx.Set(p.C.Keys().Delayed(p.Ids[layout.Delayed], due+1), nil)
	}},
	{"delayed and ready", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.Ids[layout.Delayed], p.Row(t, layout.Delayed).Spec), []byte("go:f"))
	}},
	{"claimed and ready", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.Ids[layout.Claimed], p.Row(t, layout.Claimed).Spec), []byte("go:f"))
	}},
	{"realized and delayed", only(InvariantDelayed), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Delayed(p.Ids[layout.Realized], 5), nil)
	}},
	{"failed and ready", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Ready(p.Ids[layout.Failed], p.Row(t, layout.Failed).Spec), []byte("go:f"))
	}},
	{"ready key without a future", only(InvariantReady), func(t *testing.T, p *Population, tx kv.Tx) {
		id := p.Ids[layout.Ready]
		id[0]++
		tx.Set(p.C.Keys().Ready(id, p.Row(t, layout.Ready).Spec), []byte("go:f"))
	}},
	{"delayed key without a future", only(InvariantDelayed), func(_ *testing.T, p *Population, tx kv.Tx) {
		id := p.Ids[layout.Ready]
		id[0]++
		tx.Set(p.C.Keys().Delayed(id, 5), nil)
	}},
	{"claim in no list", only(InvariantClaim), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Claims(p.claim.Worker, p.claim.Sequence))
	}},
	{"claim in a list without it", only(InvariantClaim), func(t *testing.T, p *Population, tx kv.Tx) {
		batch := layout.ClaimBatch{IDs: layout.PackIDs([]layout.ID{p.Ids[layout.Ready]})}
		tx.Set(p.C.Keys().Claims(p.claim.Worker, p.claim.Sequence), MustRecord(t, &batch))
	}},
	{"claim of a worker that never was", only(InvariantClaim), func(t *testing.T, p *Population, tx kv.Tx) {
		claim := &layout.Claim{Token: layout.Token{Worker: "nobody", Sequence: 1}}
		tx.Set(p.C.Keys().State(p.Ids[layout.Claimed], layout.StateClaim), MustStamped(t, claim))
	}},
	{"result of a failed future", only(InvariantResult), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Failed], layout.StateResult), MustStamped(t, &layout.Result{Token: p.claim, Attempt: 1}))
	}},
	{"result of an attempt that was not", only(InvariantResult), func(t *testing.T, p *Population, tx kv.Tx) {
		result := *p.Row(t, layout.Realized).Result
		result.Attempt = 2
		tx.Set(p.C.Keys().State(p.Ids[layout.Realized], layout.StateResult), MustStamped(t, &result))
	}},
	{"realized with a final exception", only(InvariantException), func(t *testing.T, p *Population, tx kv.Tx) {
		e := &layout.Exception{Kind: layout.KindError, Final: true}
		tx.Set(p.C.Keys().State(p.Ids[layout.Realized], layout.StateException), MustRecord(t, e))
	}},
	{"failed before its last attempt", only(InvariantException), func(t *testing.T, p *Population, tx kv.Tx) {
		spec := *p.Row(t, layout.Failed).Spec
		spec.MaxRetries = 1
		tx.Set(p.C.Keys().Spec(p.Ids[layout.Failed]), MustRecord(t, &spec))
	}},
	{"lost without crashes", only(InvariantException), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Failed], layout.StateException), MustRecord(t, &layout.Exception{
			Kind: layout.KindLost, Final: true, At: p.Row(t, layout.Failed).Exception.At,
		}))
	}},
	{"too many attempts", only(InvariantAttempts), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Failed], layout.StateAttempts), MustRecord(t, &layout.Attempts{Failed: 9}))
	}},
	{"attempts without an exception", only(InvariantAttempts), func(t *testing.T, p *Population, tx kv.Tx) {
		spec := *p.Row(t, layout.Ready).Spec
		spec.MaxRetries = 3
		tx.Set(p.C.Keys().Spec(p.Ids[layout.Ready]), MustRecord(t, &spec))
		tx.Set(p.C.Keys().State(p.Ids[layout.Ready], layout.StateAttempts), MustRecord(t, &layout.Attempts{Failed: 1}))
	}},
	{"negative count", only(InvariantAttempts), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Ready], layout.StateAttempts), MustRecord(t, &layout.Attempts{PutBack: -1}))
	}},
	{"claimed with a due time", only(InvariantAttempts), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Claimed], layout.StateAttempts), MustRecord(t, &layout.Attempts{Due: 5}))
	}},
	{"realized and asked to stop", only(InvariantCancel), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Realized], layout.StateCancel), MustRecord(t, &layout.CancelRequest{At: 1}))
	}},
	{"arguments gone", only(InvariantArgs), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Args(p.Middle))
	}},
	{"arguments cut", only(InvariantArgs), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Args(p.Middle), []byte("short"))
	}},
	{"arguments of nobody", only(InvariantArgs), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Args(p.Ids[layout.Ready]), []byte("x"))
	}},
	{"state changed and the counters not", []Invariant{InvariantCounts, InvariantCounts},
		func(t *testing.T, p *Population, tx kv.Tx) {
			row := p.Row(t, layout.Ready)
			tx.Clear(p.C.Keys().Ready(row.ID, row.Spec))
			tx.Set(p.C.Keys().Delayed(row.ID, 5), nil)
			tx.Set(p.C.Keys().State(row.ID, layout.StateAttempts), MustRecord(t, &layout.Attempts{Due: 5}))
		}},
	{"finished and not in the done list", []Invariant{InvariantDone}, func(t *testing.T, p *Population, tx kv.Tx) {
		id := p.Ids[layout.Realized]
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
	{"row that can't be read", only(InvariantRecord), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Spec(p.Ids[layout.Claimed]), []byte{layout.RecordVersion, 0xc1})
	}},
	{"unknown part of a future", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.C.Keys().Row(p.Ids[layout.Ready]), "what"), nil)
	}},
	{"unknown part of a future's state", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Ids[layout.Ready], "what"), nil)
	}},
	{"a part below a part", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(tuple.AppendInt(p.C.Keys().Spec(p.Ids[layout.Ready]), 1), nil)
	}},
	{"future in another shard", only(InvariantKey), func(t *testing.T, p *Population, tx kv.Tx) {
		row := p.Row(t, layout.Ready)
		shard := (row.ID.Shard(p.C.Keys().Shards) + 1) % p.C.Keys().Shards
		key := tuple.AppendString(tuple.AppendUUID(p.C.Keys().FuturesOf(shard), row.ID), layout.RowSpec)
		tx.Set(key, MustRecord(t, row.Spec))
	}},
}

// breakRest are writes beside the rows.
var breakRest = []breakage{
	{"piece of a result gone", only(InvariantChunks), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Chunk(p.Large, p.result, 1))
	}},
	{"piece of arguments cut", only(InvariantChunks), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Chunk(p.Large, p.args, 1), []byte("short"))
	}},
	{"piece without a number", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Chunks(p.Large, p.result), nil)
	}},
	{"counter off", only(InvariantCounts), func(_ *testing.T, p *Population, tx kv.Tx) {
		shard := p.Ids[layout.Ready].Shard(p.C.Keys().Shards)
		tx.Atomic(kv.Add, p.C.Keys().Count(shard, layout.DefaultQueue, "", layout.Ready), layout.EncodeCounter(1))
	}},
	{"counter gone", only(InvariantCounts), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Count(p.Ids[layout.Delayed].Shard(p.C.Keys().Shards), layout.DefaultQueue, "", layout.Delayed))
	}},
	{"counter of nobody", only(InvariantCounts), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Atomic(kv.Add, p.C.Keys().Count(0, "nobody", "", layout.Ready), layout.EncodeCounter(-1))
	}},
	{"counter of assigned futures off", only(InvariantCounts), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Atomic(kv.Add, p.C.Keys().GroupOpen("g", "c"), layout.EncodeCounter(1))
	}},
	{"counter of assigned futures gone", only(InvariantCounts), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().GroupOpen("g", "c"))
	}},
	{"counter of assigned futures of nobody", only(InvariantCounts), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().GroupOpen("nobody", "c"), layout.EncodeCounter(2))
	}},
	{"counter that is none", only(InvariantRecord), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Count(0, "nobody", "", layout.Ready), []byte("x"))
	}},
	{"done list that can't be read", only(InvariantRecord), func(t *testing.T, p *Population, tx kv.Tx) {
		key := tuple.AppendStamp(p.C.Keys().DoneOf(3), [10]byte{}, 0)
		tx.Set(key, MustRecord(t, &layout.DoneEntry{IDs: []byte("x")}))
	}},
	{"mail without a bell", only(InvariantMail), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Bell("s"))
	}},
	{"mail that can't be read", only(InvariantRecord), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(tuple.AppendStamp(p.C.Keys().Mailbox("s"), [10]byte{}, 0), []byte{layout.RecordVersion, 0, 0, 0, 1})
	}},
	{"mail about nothing that ended", only(InvariantMail), func(t *testing.T, p *Population, tx kv.Tx) {
		notice, err := msgpack.Marshal(&layout.Notice{ID: p.Ids[layout.Ready], State: layout.Ready})
		require.NoError(t, err)
		tx.Set(tuple.AppendStamp(p.C.Keys().Mailbox("s"), [10]byte{}, 0), append([]byte{layout.RecordVersion, 0, 0, 0, 1}, notice...))
	}},
	{"session that can't be read", only(InvariantRecord), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Session("s"), []byte{layout.RecordVersion})
	}},
	{"heartbeat of nobody", only(InvariantWorker), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Worker("gone", layout.WorkerHeartbeat), MustRecord(t, &layout.Heartbeat{}))
	}},
	{"worker without a heartbeat", only(InvariantWorker), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Worker(p.Worker.ID(), layout.WorkerHeartbeat))
	}},
	{"worker without its address", only(InvariantWorker), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Address("10.0.0.1:1"))
	}},
	{"idle and dead", only(InvariantIdle), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Idle(layout.DefaultQueue, "gone"), MustRecord(t, &layout.IdleRecord{}))
	}},
	{"idle in a queue of others", only(InvariantIdle), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Idle("others", p.Worker.ID()), MustRecord(t, &layout.IdleRecord{}))
	}},
	{"address of nobody", only(InvariantAddress), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Address("10.0.0.2:1"), []byte("gone"))
	}},
	{"second address of a worker", only(InvariantAddress), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Address("10.0.0.2:1"), []byte(p.Worker.ID()))
	}},
	{"claims that can't be read", only(InvariantRecord), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Claims(p.Worker.ID(), 99), []byte{layout.RecordVersion})
	}},
	{"unknown part of a worker", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Worker(p.Worker.ID(), "what"), nil)
	}},
	{"alias of no module", only(InvariantAlias), func(t *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Alias("lost"), MustRecord(t, &layout.AliasRecord{CID: "bafk"}))
	}},
	{"piece of a module gone", only(InvariantModule), func(t *testing.T, p *Population, tx kv.Tx) {
		cid, err := fdbmodel.ModuleCID([]byte("not really a module"))
		require.NoError(t, err)
		tx.Clear(p.C.Keys().CodeBody(cid, 0))
	}},
	{"config gone", only(InvariantConfig), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Config())
	}},
	{"config of others", only(InvariantConfig), func(t *testing.T, p *Population, tx kv.Tx) {
		config := p.C.Config()
		config.Shards *= 2
		tx.Set(p.C.Keys().Config(), MustRecord(t, config))
	}},
	{"janitor that can't be read", only(InvariantRecord), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Janitor(), []byte{0})
	}},
	{"unknown key", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Global("what"), nil)
	}},
	{"unknown key of a shard", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Shard(3, "what"), nil)
	}},
	{"a shard too many", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().DoneOf(p.C.Keys().Shards), nil)
	}},
	{"a shard below 0", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(p.C.Keys().DoneOf(-1), nil)
	}},
	{"no tuple", only(InvariantKey), func(_ *testing.T, p *Population, tx kv.Tx) {
		tx.Set(append(p.C.Keys().All().Begin, 0xfe), nil)
	}},
}
