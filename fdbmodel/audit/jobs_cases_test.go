package audit_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// breakJobs are writes into a log of jobs.
var breakJobs = []breakage{
	{"last job gone", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Job(modeltest.Jobs, 4))
	}},
	{"job in the middle gone", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(p.C.Keys().Job(modeltest.Jobs, 3))
	}},
	{"job behind the last", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Job(modeltest.Jobs, 5), layout.Encode(&layout.Job{}))
	}},
	{"job before the first", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Job(modeltest.Jobs, 1), layout.Encode(&layout.Job{}))
	}},
	{"job of no log", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Job("other", 1), layout.Encode(&layout.Job{}))
	}},
	{"job below 0", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().Job(modeltest.Jobs, -1), layout.Encode(&layout.Job{}))
	}},
	{"log that begins behind its end", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().JobsPart("other", layout.JobsFirstPart), layout.Encode(&layout.JobsFirst{First: 6}))
	}},
	{"log that begins with no job", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().JobsPart("other", layout.JobsFirstPart), layout.Encode(&layout.JobsFirst{First: -2}))
	}},
	{"consumer ahead of the log", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().JobsNamed(modeltest.Jobs, layout.JobsProgressPart, "other"),
			layout.Encode(&layout.JobProgress{Index: 5}))
	}},
	{"producer ahead of the log", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().JobsNamed(modeltest.Jobs, layout.JobsProducersPart, "other"),
			layout.Encode(&layout.JobProducer{First: 4, Count: 2}))
	}},
	{"lease without progress", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().JobsNamed(modeltest.Jobs, layout.JobsLeasesPart, "other"), layout.Encode(&layout.JobLease{}))
	}},
	{"parked and not passed", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().JobsParked(modeltest.Jobs, layout.JobsParkedPart, "consumer", 4),
			layout.Encode(&layout.ParkedJob{}))
	}},
	{"retry of what is not parked", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(p.C.Keys().JobsParked(modeltest.Jobs, layout.JobsRetryPart, "consumer", 3), layout.Mark())
	}},
}
