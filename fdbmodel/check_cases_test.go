package fdbmodel

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// breakage is a raw write into a healthy cluster, and what a check calls it.
type breakage struct {
	name string
	want []Invariant
	how  func(*testing.T, *population, kv.Tx)
}

func only(i Invariant) []Invariant { return []Invariant{i} }

// breakRow are writes into the rows of futures.
var breakRow = []breakage{
	{"spec gone", []Invariant{InvariantReady, InvariantSpec}, func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Ready], stateAttempts), []byte{recordVersion, 0x80})
		tx.Clear(p.c.keys.spec(p.ids[Ready]))
	}},
	{"ready key gone", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.ready(p.ids[Ready], p.row(t, Ready).Spec))
	}},
	{"ready key elsewhere", []Invariant{InvariantReady, InvariantReady}, func(t *testing.T, p *population, tx kv.Tx) {
		spec := *p.row(t, Ready).Spec
		tx.Clear(p.c.keys.ready(p.ids[Ready], &spec))
		spec.Priority = 7
		tx.Set(p.c.keys.ready(p.ids[Ready], &spec), []byte("go:f"))
	}},
	{"ready key twice", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		spec := *p.row(t, Ready).Spec
		spec.Requirements.CPU = 1
		tx.Set(p.c.keys.ready(p.ids[Ready], &spec), []byte("go:f"))
	}},
	{"ready key of another function", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.ready(p.ids[Ready], p.row(t, Ready).Spec), []byte("go:g"))
	}},
	{"held key gone", only(InvariantHeld), func(t *testing.T, p *population, tx kv.Tx) {
		row := p.get(t, p.held[0])
		tx.Clear(p.c.keys.held(&row))
	}},
	{"held and in the pool", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.ready(p.held[0], p.get(t, p.held[0]).Spec), []byte("go:f"))
	}},
	{"held key of an assigned one", only(InvariantHeld), func(t *testing.T, p *population, tx kv.Tx) {
		row := p.get(t, p.held[1])
		tx.Set(p.c.keys.held(&row), []byte("go:f"))
	}},
	{"held key without a future", only(InvariantHeld), func(t *testing.T, p *population, tx kv.Tx) {
		row := p.get(t, p.held[0])
		row.ID[0]++
		tx.Set(p.c.keys.held(&row), []byte("go:f"))
	}},
	{"assignment gone", only(InvariantAssigned), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.assigned(p.worker.ID(), p.held[1], p.get(t, p.held[1]).Spec))
	}},
	{"assignment to another", []Invariant{InvariantAssigned, InvariantAssigned},
		func(t *testing.T, p *population, tx kv.Tx) {
			tx.Set(p.c.keys.assigned("another", p.held[1], p.get(t, p.held[1]).Spec), []byte("go:f"))
		}},
	{"assignment of another function", only(InvariantAssigned), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.assigned(p.worker.ID(), p.held[1], p.get(t, p.held[1]).Spec), []byte("go:g"))
	}},
	{"assignment to a worker without its mark", only(InvariantAssigned), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.worker(p.worker.ID(), workerAssigned))
	}},
	{"assignment that is none", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.c.keys.assignedTo(p.worker.ID()), "q"), []byte("go:f"))
	}},
	{"group that is none", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.c.keys.groupBell("g"), "x"), []byte("go:f"))
	}},
	{"batch that is not listed", only(InvariantBatch), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.batchAt(7, "b"))
	}},
	{"batch gone", []Invariant{InvariantBatch, InvariantBatch}, func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.batchRecord("b"))
	}},
	{"batch key that is none", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.c.keys.batch("b"), "x"), nil)
	}},
	{"delayed key gone", only(InvariantDelayed), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.delayed(p.ids[Delayed], p.row(t, Delayed).Attempts.Due))
	}},
	{"delayed elsewhere", []Invariant{InvariantDelayed, InvariantDelayed}, func(t *testing.T, p *population, tx kv.Tx) {
		due := p.row(t, Delayed).Attempts.Due
		tx.Clear(p.c.keys.delayed(p.ids[Delayed], due))
		tx.Set(p.c.keys.delayed(p.ids[Delayed], due+1), nil)
	}},
	{"delayed and ready", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.ready(p.ids[Delayed], p.row(t, Delayed).Spec), []byte("go:f"))
	}},
	{"claimed and ready", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.ready(p.ids[Claimed], p.row(t, Claimed).Spec), []byte("go:f"))
	}},
	{"realized and delayed", only(InvariantDelayed), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.delayed(p.ids[Realized], 5), nil)
	}},
	{"failed and ready", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.ready(p.ids[Failed], p.row(t, Failed).Spec), []byte("go:f"))
	}},
	{"ready key without a future", only(InvariantReady), func(t *testing.T, p *population, tx kv.Tx) {
		id := p.ids[Ready]
		id[0]++
		tx.Set(p.c.keys.ready(id, p.row(t, Ready).Spec), []byte("go:f"))
	}},
	{"delayed key without a future", only(InvariantDelayed), func(_ *testing.T, p *population, tx kv.Tx) {
		id := p.ids[Ready]
		id[0]++
		tx.Set(p.c.keys.delayed(id, 5), nil)
	}},
	{"claim in no list", only(InvariantClaim), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.claims(p.claim.Worker, p.claim.Sequence))
	}},
	{"claim in a list without it", only(InvariantClaim), func(t *testing.T, p *population, tx kv.Tx) {
		batch := claimBatch{IDs: packIDs([]ID{p.ids[Ready]})}
		tx.Set(p.c.keys.claims(p.claim.Worker, p.claim.Sequence), mustRecord(t, &batch))
	}},
	{"claim of a worker that never was", only(InvariantClaim), func(t *testing.T, p *population, tx kv.Tx) {
		claim := &Claim{Token: Token{Worker: "nobody", Sequence: 1}}
		tx.Set(p.c.keys.state(p.ids[Claimed], stateClaim), mustStamped(t, claim))
	}},
	{"result of a failed future", only(InvariantResult), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Failed], stateResult), mustStamped(t, &Result{Token: p.claim, Attempt: 1}))
	}},
	{"result of an attempt that was not", only(InvariantResult), func(t *testing.T, p *population, tx kv.Tx) {
		result := *p.row(t, Realized).Result
		result.Attempt = 2
		tx.Set(p.c.keys.state(p.ids[Realized], stateResult), mustStamped(t, &result))
	}},
	{"realized with a final exception", only(InvariantException), func(t *testing.T, p *population, tx kv.Tx) {
		e := &Exception{Kind: KindError, Final: true}
		tx.Set(p.c.keys.state(p.ids[Realized], stateException), mustRecord(t, e))
	}},
	{"failed before its last attempt", only(InvariantException), func(t *testing.T, p *population, tx kv.Tx) {
		spec := *p.row(t, Failed).Spec
		spec.MaxRetries = 1
		tx.Set(p.c.keys.spec(p.ids[Failed]), mustRecord(t, &spec))
	}},
	{"lost without crashes", only(InvariantException), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Failed], stateException), mustRecord(t, &Exception{
			Kind: KindLost, Final: true, At: p.row(t, Failed).Exception.At,
		}))
	}},
	{"too many attempts", only(InvariantAttempts), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Failed], stateAttempts), mustRecord(t, &Attempts{Failed: 9}))
	}},
	{"attempts without an exception", only(InvariantAttempts), func(t *testing.T, p *population, tx kv.Tx) {
		spec := *p.row(t, Ready).Spec
		spec.MaxRetries = 3
		tx.Set(p.c.keys.spec(p.ids[Ready]), mustRecord(t, &spec))
		tx.Set(p.c.keys.state(p.ids[Ready], stateAttempts), mustRecord(t, &Attempts{Failed: 1}))
	}},
	{"negative count", only(InvariantAttempts), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Ready], stateAttempts), mustRecord(t, &Attempts{PutBack: -1}))
	}},
	{"claimed with a due time", only(InvariantAttempts), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Claimed], stateAttempts), mustRecord(t, &Attempts{Due: 5}))
	}},
	{"realized and asked to stop", only(InvariantCancel), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Realized], stateCancel), mustRecord(t, &CancelRequest{At: 1}))
	}},
	{"arguments gone", only(InvariantArgs), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.args(p.middle))
	}},
	{"arguments cut", only(InvariantArgs), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.args(p.middle), []byte("short"))
	}},
	{"arguments of nobody", only(InvariantArgs), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.args(p.ids[Ready]), []byte("x"))
	}},
	{"state changed and the counters not", []Invariant{InvariantCounts, InvariantCounts},
		func(t *testing.T, p *population, tx kv.Tx) {
			row := p.row(t, Ready)
			tx.Clear(p.c.keys.ready(row.ID, row.Spec))
			tx.Set(p.c.keys.delayed(row.ID, 5), nil)
			tx.Set(p.c.keys.state(row.ID, stateAttempts), mustRecord(t, &Attempts{Due: 5}))
		}},
	{"finished and not in the done list", []Invariant{InvariantDone}, func(t *testing.T, p *population, tx kv.Tx) {
		id := p.ids[Realized]
		for shard := range p.c.keys.shards {
			r := kv.Prefix(p.c.keys.doneOf(shard))
			page, err := tx.GetRange(r, kv.RangeOptions{}).Wait(context.Background())
			require.NoError(t, err)
			for _, item := range page.Items {
				if bytes.Contains(item.Value, id[:]) {
					tx.Clear(item.Key)
				}
			}
		}
	}},
	{"row that can't be read", only(InvariantRecord), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.spec(p.ids[Claimed]), []byte{recordVersion, 0xc1})
	}},
	{"unknown part of a future", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(tuple.AppendString(p.c.keys.row(p.ids[Ready]), "what"), nil)
	}},
	{"unknown part of a future's state", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.state(p.ids[Ready], "what"), nil)
	}},
	{"a part below a part", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(tuple.AppendInt(p.c.keys.spec(p.ids[Ready]), 1), nil)
	}},
	{"future in another shard", only(InvariantKey), func(t *testing.T, p *population, tx kv.Tx) {
		row := p.row(t, Ready)
		shard := (row.ID.shard(p.c.keys.shards) + 1) % p.c.keys.shards
		key := tuple.AppendString(tuple.AppendUUID(p.c.keys.futuresOf(shard), row.ID), rowSpec)
		tx.Set(key, mustRecord(t, row.Spec))
	}},
}

// breakRest are writes beside the rows.
var breakRest = []breakage{
	{"piece of a result gone", only(InvariantChunks), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.chunk(p.large, p.result, 1))
	}},
	{"piece of arguments cut", only(InvariantChunks), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.chunk(p.large, p.args, 1), []byte("short"))
	}},
	{"piece without a number", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.chunks(p.large, p.result), nil)
	}},
	{"counter off", only(InvariantCounts), func(_ *testing.T, p *population, tx kv.Tx) {
		shard := p.ids[Ready].shard(p.c.keys.shards)
		tx.Atomic(kv.Add, p.c.keys.count(shard, DefaultQueue, "", Ready), littleEndian(1))
	}},
	{"counter gone", only(InvariantCounts), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.count(p.ids[Delayed].shard(p.c.keys.shards), DefaultQueue, "", Delayed))
	}},
	{"counter of nobody", only(InvariantCounts), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Atomic(kv.Add, p.c.keys.count(0, "nobody", "", Ready), littleEndian(-1))
	}},
	{"counter of assigned futures off", only(InvariantCounts), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Atomic(kv.Add, p.c.keys.groupOpen("g", "c"), littleEndian(1))
	}},
	{"counter of assigned futures gone", only(InvariantCounts), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.groupOpen("g", "c"))
	}},
	{"counter of assigned futures of nobody", only(InvariantCounts), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.groupOpen("nobody", "c"), littleEndian(2))
	}},
	{"counter that is none", only(InvariantRecord), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.count(0, "nobody", "", Ready), []byte("x"))
	}},
	{"done list that can't be read", only(InvariantRecord), func(t *testing.T, p *population, tx kv.Tx) {
		key := tuple.AppendStamp(p.c.keys.doneOf(3), [10]byte{}, 0)
		tx.Set(key, mustRecord(t, &doneEntry{IDs: []byte("x")}))
	}},
	{"mail without a bell", only(InvariantMail), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.bell("s"))
	}},
	{"mail that can't be read", only(InvariantRecord), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(tuple.AppendStamp(p.c.keys.mailbox("s"), [10]byte{}, 0), []byte{recordVersion, 0, 0, 0, 1})
	}},
	{"mail about nothing that ended", only(InvariantMail), func(t *testing.T, p *population, tx kv.Tx) {
		notice, err := msgpack.Marshal(&Notice{ID: p.ids[Ready], State: Ready})
		require.NoError(t, err)
		tx.Set(tuple.AppendStamp(p.c.keys.mailbox("s"), [10]byte{}, 0), append([]byte{recordVersion, 0, 0, 0, 1}, notice...))
	}},
	{"session that can't be read", only(InvariantRecord), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.session("s"), []byte{recordVersion})
	}},
	{"heartbeat of nobody", only(InvariantWorker), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.worker("gone", workerHeartbeat), mustRecord(t, &Heartbeat{}))
	}},
	{"worker without a heartbeat", only(InvariantWorker), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.worker(p.worker.ID(), workerHeartbeat))
	}},
	{"worker without its address", only(InvariantWorker), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.address("10.0.0.1:1"))
	}},
	{"idle and dead", only(InvariantIdle), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.idle(DefaultQueue, "gone"), mustRecord(t, &idleRecord{}))
	}},
	{"idle in a queue of others", only(InvariantIdle), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.idle("others", p.worker.ID()), mustRecord(t, &idleRecord{}))
	}},
	{"address of nobody", only(InvariantAddress), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.address("10.0.0.2:1"), []byte("gone"))
	}},
	{"second address of a worker", only(InvariantAddress), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.address("10.0.0.2:1"), []byte(p.worker.ID()))
	}},
	{"claims that can't be read", only(InvariantRecord), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.claims(p.worker.ID(), 99), []byte{recordVersion})
	}},
	{"unknown part of a worker", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.worker(p.worker.ID(), "what"), nil)
	}},
	{"alias of no module", only(InvariantAlias), func(t *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.alias("lost"), mustRecord(t, &aliasRecord{CID: "bafk"}))
	}},
	{"piece of a module gone", only(InvariantModule), func(t *testing.T, p *population, tx kv.Tx) {
		cid, err := ModuleCID([]byte("not really a module"))
		require.NoError(t, err)
		tx.Clear(p.c.keys.codeBody(cid, 0))
	}},
	{"config gone", only(InvariantConfig), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Clear(p.c.keys.config())
	}},
	{"config of others", only(InvariantConfig), func(t *testing.T, p *population, tx kv.Tx) {
		config := p.c.config
		config.Shards *= 2
		tx.Set(p.c.keys.config(), mustRecord(t, config))
	}},
	{"janitor that can't be read", only(InvariantRecord), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.janitor(), []byte{0})
	}},
	{"unknown key", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.global("what"), nil)
	}},
	{"unknown key of a shard", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.shard(3, "what"), nil)
	}},
	{"a shard too many", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.doneOf(p.c.keys.shards), nil)
	}},
	{"a shard below 0", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(p.c.keys.doneOf(-1), nil)
	}},
	{"no tuple", only(InvariantKey), func(_ *testing.T, p *population, tx kv.Tx) {
		tx.Set(append(p.c.keys.all().Begin, 0xfe), nil)
	}},
}
