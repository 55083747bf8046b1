package fdbmodel

import (
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// demand describes what futures in the pool require of a worker, and where they
// are.
type demand struct {
	queue, function string
	cpu, ram, gpu   int64
	labels          string          // a LabelText
	object          bool            // their results are to be objects
	near            layout.WorkerID // the one that others leave them to
	failedOn        layout.WorkerID // the last worker on which an attempt failed
	refused         string          // the names of those that pass them over, each between spaces
	shard           int
}

func (d demand) requirements() layout.Requirements {
	return layout.Requirements{CPU: d.cpu, RAM: d.ram, GPU: d.gpu}
}

// demands counts futures that entered the pool, by their demand.
type demands map[demand]int

func (d *demands) add(s *layout.Spec, shard int) { d.addRow(&layout.Row{Spec: s}, shard, 0) }

// addRow adds a future as it is at a time, in milliseconds.
func (d *demands) addRow(row *layout.Row, shard int, now int64) {
	if *d == nil {
		*d = demands{}
	}
	s, class := row.Spec, row.Needs().Class()
	failedOn := layout.WorkerID("")
	if row.Exception != nil {
		failedOn = row.Exception.Worker
	}
	refused := ""
	for i := range row.Attempts.Refused {
		if one := &row.Attempts.Refused[i]; one.Until > now {
			refused += " " + one.Name() + " "
		}
	}
	(*d)[demand{s.Queue, s.Function, class.CPU, class.RAM, class.GPU, class.Labels, s.AsObject, row.Attempts.Near,
		failedOn, refused, shard}]++
}

func (d *demands) addMany(one demand, n int) {
	if *d == nil {
		*d = demands{}
	}
	(*d)[one] += n
}

// refusedBy reports whether a worker or peer passes them over, by its name.
func (d *demand) refusedBy(name string) bool {
	return d.refused != "" && strings.Contains(d.refused, " "+name+" ")
}

// anyFailed reports whether attempts failed of some that are left.
func (d demands) anyFailed() bool {
	for demand, n := range d {
		if n > 0 && demand.failedOn != "" {
			return true
		}
	}
	return false
}

// take removes one suitable future of a queue, and returns its shard, or false
// if there is none.
func (d demands) take(queue string, fits func(demand) bool) (shard int, found bool) {
	for demand, n := range d {
		if n > 0 && demand.queue == queue && fits(demand) {
			d[demand]--
			return demand.shard, true
		}
	}
	return 0, false
}

// queues returns the queues that still have futures.
func (d demands) queues() map[string]struct{} {
	queues := map[string]struct{}{}
	for demand, n := range d {
		if n > 0 {
			queues[demand.queue] = struct{}{}
		}
	}
	return queues
}

// maxIdleFunctions is the maximum size of the names in an IdleRecord, in bytes.
const maxIdleFunctions = 2 << 10

func idleRecordOf(info *layout.WorkerInfo, req *ClaimRequest) *layout.IdleRecord {
	record := layout.IdleRecord{Resources: req.Free, Labels: info.Labels, NoRoom: req.noObjects()}
	size := 0
	for _, f := range info.Functions {
		size += len(f)
	}
	if size <= maxIdleFunctions {
		record.Functions = info.Functions
	}
	return &record
}

// fitsIdle reports whether the worker may be able to take a future.
func fitsIdle(r *layout.IdleRecord, d demand) bool {
	info := layout.WorkerInfo{Functions: r.Functions, Labels: r.Labels}
	return r.Fit(d.requirements()) && !(d.object && r.NoRoom) && (d.labels == "" || info.LabelSet().Have(d.labels)) &&
		(len(r.Functions) == 0 || info.Runs(d.function))
}
