package audit_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// breakJobs are writes into a log of jobs.
var breakJobs = []breakage{
	{"last job gone", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(joblog.Keys(p.C.Keys()).Job(modeltest.Jobs, 4))
	}},
	{"job in the middle gone", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Clear(joblog.Keys(p.C.Keys()).Job(modeltest.Jobs, 3))
	}},
	{"job behind the last", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Job(modeltest.Jobs, 5), layout.Encode(&joblog.Job{}))
	}},
	{"job before the first", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Job(modeltest.Jobs, 1), layout.Encode(&joblog.Job{}))
	}},
	{"job of no log", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Job("other", 1), layout.Encode(&joblog.Job{}))
	}},
	{"job below 0", only(audit.InvariantKey), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Job(modeltest.Jobs, -1), layout.Encode(&joblog.Job{}))
	}},
	{"log that begins behind its end", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).First("other"), layout.Encode(&joblog.First{First: 6}))
	}},
	{"log that begins with no job", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).First("other"), layout.Encode(&joblog.First{First: -2}))
	}},
	{"consumer ahead of the log", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Progress(modeltest.Jobs, "other"),
			layout.Encode(&joblog.Progress{Index: 5}))
	}},
	{"producer ahead of the log", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Producer(modeltest.Jobs, "other"),
			layout.Encode(&joblog.Producer{First: 4, Count: 2}))
	}},
	{"lease without progress", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Lease(modeltest.Jobs, "other"), layout.Encode(&joblog.LeaseRecord{}))
	}},
	{"parked and not passed", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Parked(modeltest.Jobs, "consumer", 4),
			layout.Encode(&joblog.ParkedJob{}))
	}},
	{"retry of what is not parked", only(audit.InvariantJobs), func(_ *testing.T, p *modeltest.Population, tx kv.Tx) {
		tx.Set(joblog.Keys(p.C.Keys()).Retry(modeltest.Jobs, "consumer", 3), layout.Mark())
	}},
}
