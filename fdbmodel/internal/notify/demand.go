package notify

import (
	"fmt"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Demand describes what futures in the pool require of a worker, and where they
// are.
type Demand struct {
	Queue, Function string
	CPU, RAM, GPU   int64
	Labels          string          // a LabelText
	Object          bool            // their results are to be objects
	Near            layout.WorkerID // the one that others leave them to
	FailedOn        layout.WorkerID // the last worker on which an attempt failed
	Refused         string          // the names of those that pass them over, each between spaces
	Shard           int
}

func (d Demand) requirements() layout.Requirements {
	return layout.Requirements{CPU: d.CPU, RAM: d.RAM, GPU: d.GPU}
}

// Demands counts futures that entered the pool, by their demand.
type Demands map[Demand]int

// Add adds a new future.
func (d *Demands) Add(s *layout.Spec, shard int) { d.AddRow(&layout.Row{Spec: s}, shard, 0) }

// AddRow adds a future as it is at a time, in milliseconds.
func (d *Demands) AddRow(row *layout.Row, shard int, now int64) {
	if *d == nil {
		*d = Demands{}
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
	(*d)[Demand{s.Queue, s.Function, class.CPU, class.RAM, class.GPU, class.Labels, s.AsObject, row.Attempts.Near,
		failedOn, refused, shard}]++
}

// AddAll adds those of another count.
func (d *Demands) AddAll(others Demands) {
	if *d == nil {
		*d = Demands{}
	}
	for one, n := range others {
		(*d)[one] += n
	}
}

// refusedBy reports whether a worker or peer passes them over, by its name.
func (d *Demand) refusedBy(name string) bool {
	return d.Refused != "" && strings.Contains(d.Refused, " "+name+" ")
}

// anyFailed reports whether attempts failed of some that are left.
func (d Demands) anyFailed() bool {
	for demand, n := range d {
		if n > 0 && demand.FailedOn != "" {
			return true
		}
	}
	return false
}

// take removes one suitable future of a queue, and returns its shard, or false
// if there is none.
func (d Demands) take(queue string, fits func(Demand) bool) (shard int, found bool) {
	for demand, n := range d {
		if n > 0 && demand.Queue == queue && fits(demand) {
			d[demand]--
			return demand.Shard, true
		}
	}
	return 0, false
}

// queues returns the queues that still have futures.
func (d Demands) queues() map[string]struct{} {
	queues := map[string]struct{}{}
	for demand, n := range d {
		if n > 0 {
			queues[demand.Queue] = struct{}{}
		}
	}
	return queues
}

// Message encodes a demand for Hinted.
func (d Demand) Message() []byte {
	b := tuple.AppendString(nil, d.Queue)
	b = tuple.AppendString(b, d.Function)
	for _, n := range []int64{d.CPU, d.RAM, d.GPU, int64(d.Shard)} {
		b = tuple.AppendInt(b, n)
	}
	b = tuple.AppendString(b, d.Labels)
	return tuple.AppendBool(b, d.Object)
}

// demandOf decodes a message. Parts that a newer version adds are ignored.
func demandOf(message []byte, shards int) (Demand, error) {
	r := tuple.NewReader(message)
	d := Demand{Queue: r.Text(), Function: r.Text(), CPU: r.Int(), RAM: r.Int(), GPU: r.Int()}
	shard := r.Int()
	d.Labels, d.Object = r.Text(), r.Bool()
	if err := r.Err(); err != nil {
		return d, fmt.Errorf("a hint: %w", err)
	}
	if shard < 0 || shard >= int64(shards) {
		return d, fmt.Errorf("a hint at shard %d of %d", shard, shards)
	}
	d.Shard = int(shard)
	return d, nil
}
