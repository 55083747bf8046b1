package audit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// breakSchedules are writes into the schedule of a population.
var breakSchedules = []breakage{
	{"pause of nothing", only(audit.InvariantPause), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(pause.Keys(p.C.Keys()).Pause(pause.Queue, "no name"), layout.Encode(&pause.Record{}))
	}},
	{"schedule gone", only(audit.InvariantSchedule), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(schedule.Keys(p.C.Keys()).Definition("daily"))
	}},
	{"state of a schedule gone", []audit.Invariant{audit.InvariantSchedule, audit.InvariantSchedule},
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(schedule.Keys(p.C.Keys()).State("daily"))
		}},
	{"schedule that nobody will look at", only(audit.InvariantSchedule),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(schedule.Keys(p.C.Keys()).At(daily(t, p).Next, "daily"))
		}},
	{"schedule that is due twice", only(audit.InvariantSchedule), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(schedule.Keys(p.C.Keys()).At(5, "daily"), layout.Mark())
	}},
	{"schedule that is paused and due", only(audit.InvariantSchedule),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			state := daily(t, p)
			state.PausedAt = 1
			tx.Set(schedule.Keys(p.C.Keys()).State("daily"), layout.Encode(&state))
		}},
	{"due schedule that does not exist", only(audit.InvariantSchedule),
		func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(schedule.Keys(p.C.Keys()).At(5, "none"), layout.Mark())
		}},
	{"line of a schedule in disorder", []audit.Invariant{audit.InvariantSchedule, audit.InvariantSchedule},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			state := daily(t, p)
			state.Line = []int64{9, 7}
			tx.Clear(schedule.Keys(p.C.Keys()).At(state.Next, "daily"))
			tx.Set(schedule.Keys(p.C.Keys()).State("daily"), layout.Encode(&state))
		}},
}

// breakPromises are writes beside a promise of a population.
var breakPromises = []breakage{
	{"token of no promise", only(audit.InvariantPromise), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		record := promises.Record{Digest: make([]byte, 32), At: 1}
		tx.Set(promises.Keys(p.C.Keys()).Promise(p.IDs[layout.Ready]), layout.Encode(&record))
	}},
	{"promise without a token", only(audit.InvariantPromise), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(promises.Keys(p.C.Keys()).Promise(p.Promise(t).ID))
	}},
	{"promise with a token that is none", only(audit.InvariantPromise),
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Set(promises.Keys(p.C.Keys()).Promise(p.Promise(t).ID), layout.Encode(&promises.Record{At: 1}))
		}},
	{"promise that is ready",
		[]audit.Invariant{audit.InvariantCounts, audit.InvariantCounts, audit.InvariantPromise},
		func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
			tx.Clear(p.C.Keys().State(p.Promise(t).ID, layout.StateBlocked))
		}},
	{"promise that is linked", only(audit.InvariantBlocked), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().State(p.Promise(t).ID, layout.StateBlocked), layout.Encode(&layout.BlockedRecord{Linked: 1}))
	}},
}

func daily(t *testing.T, p *modeltest.Population) schedule.State {
	s, err := schedule.Of(p.C).Get(context.Background(), "daily")
	require.NoError(t, err)
	return s.State
}

// breakLimits are writes into the futures of a population that must not wait for ever:
// the delayed one does not wait longer than for an hour after its time.
var breakLimits = []breakage{
	{"limit gone", only(audit.InvariantLimit), func(t *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(limitOf(t, p))
	}},
	{"limit of one that is over", only(audit.InvariantLimit), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Limit(p.IDs[layout.Realized], 5), layout.Mark())
	}},
	{"limit at another time", only(audit.InvariantLimit), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Limit(p.IDs[layout.Delayed], 5), layout.Mark())
	}},
	{"limit of none", only(audit.InvariantLimit), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Limit(layout.ID{9}, 5), layout.Mark())
	}},
}

func limitOf(t *testing.T, p *modeltest.Population) []byte {
	at, _ := p.Row(t, layout.Delayed).Limit()
	require.NotZero(t, at)
	return p.C.Keys().Limit(p.IDs[layout.Delayed], at)
}
