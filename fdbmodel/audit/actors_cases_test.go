package audit_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// breakActors are writes into the actor of a population.
var breakActors = []breakage{
	{"actor without a state", only(audit.InvariantActor), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(actors.Keys(p.C.Keys()).State(modeltest.Actor))
	}},
	{"state of no actor", []audit.Invariant{audit.InvariantActor, audit.InvariantActor},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(actors.Keys(p.C.Keys()).Head(modeltest.Actor))
		}},
	{"state of another size", only(audit.InvariantActor), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(actors.Keys(p.C.Keys()).State(modeltest.Actor), []byte("longer"))
	}},
	{"state that is shorter", only(audit.InvariantActor), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(actors.Keys(p.C.Keys()).State(modeltest.Actor), []byte{})
	}},
	{"head that can't be", only(audit.InvariantActor), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		head := actors.Head{Size: int64(len(modeltest.ActorState)), Parts: true}
		tx.Set(actors.Keys(p.C.Keys()).Head(modeltest.Actor), layout.Encode(&actors.HeadRecord{Head: head}))
	}},
	{"small state that is not in its head", only(audit.InvariantActor),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			head := actors.Head{Version: 1, Call: layout.ID{1}, Size: 1, At: 1}
			tx.Set(actors.Keys(p.C.Keys()).Head(actors.Ref{Type: "account", Key: "other"}),
				layout.Encode(&actors.HeadRecord{Head: head}))
		}},
	{"large state that is in its head too", only(audit.InvariantActor),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			state := make([]byte, actors.MaxInHead+1)
			head := actors.Head{Version: 1, Call: layout.ID{1}, Size: int64(len(state)), At: 1}
			other := actors.Ref{Type: "account", Key: "other"}
			tx.Set(actors.Keys(p.C.Keys()).Head(other), layout.Encode(&actors.HeadRecord{Head: head, State: state}))
			tx.Set(actors.Keys(p.C.Keys()).State(other), state)
		}},
	{"state beside a small one in its head", only(audit.InvariantActor),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			head := actors.Head{Version: 1, Call: layout.ID{1}, Size: 1, At: 1}
			other := actors.Ref{Type: "account", Key: "other"}
			tx.Set(actors.Keys(p.C.Keys()).Head(other), layout.Encode(&actors.HeadRecord{Head: head, State: []byte("s")}))
			tx.Set(actors.Keys(p.C.Keys()).State(other), []byte("s"))
		}},
	{"part of no actor", only(audit.InvariantActor), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(actors.Keys(p.C.Keys()).Part(actors.Ref{Type: "account", Key: "other"}, "p"),
			layout.Encode(&actors.PartRecord{Value: []byte("v")}))
	}},
	{"part of an actor without parts", only(audit.InvariantActor),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			head := actors.Head{Version: 1, Call: layout.ID{1}, Size: int64(len(modeltest.ActorState)), At: 1}
			tx.Set(actors.Keys(p.C.Keys()).Head(modeltest.Actor), layout.Encode(&actors.HeadRecord{Head: head}))
		}},
	{"part that is too large", only(audit.InvariantActor), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(actors.Keys(p.C.Keys()).Part(modeltest.Actor, "p"),
			layout.Encode(&actors.PartRecord{Value: make([]byte, actors.MaxPart+1)}))
	}},
	{"actor with a type that can't be", only(audit.InvariantActor),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			other := actors.Ref{Type: "a b", Key: "k"}
			tx.Set(actors.Keys(p.C.Keys()).Head(other),
				layout.Encode(&actors.HeadRecord{Head: actors.Head{Version: 1, Call: layout.ID{1}, At: 1}}))
		}},
}
