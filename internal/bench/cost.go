package bench

import (
	"runtime"
	"time"
)

// cost is what work takes, whatever the load of the machine.
type cost struct {
	// user and system are the processor time of this process, and of its children
	// that have ended.
	user, system time.Duration
	// allocations and allocated are the objects and bytes of this process.
	allocations, allocated uint64
}

// spentSoFar is the cost since the process began.
func spentSoFar() cost {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c := cost{allocations: m.Mallocs, allocated: m.TotalAlloc}
	for _, who := range []process{self, children} {
		user, system := processorTime(who)
		c.user += user
		c.system += system
	}
	return c
}

func (c cost) plus(d cost) cost {
	return cost{c.user + d.user, c.system + d.system, c.allocations + d.allocations, c.allocated + d.allocated}
}

func (c cost) minus(d cost) cost {
	return cost{c.user - d.user, c.system - d.system, c.allocations - d.allocations, c.allocated - d.allocated}
}

// Cost is what one future takes, or one second of idle workers.
type Cost struct {
	UserMicroseconds   float64 `json:"cpu_user_us"`
	SystemMicroseconds float64 `json:"cpu_system_us"`
	Allocations        float64 `json:"allocations"`
	AllocatedBytes     float64 `json:"allocated_bytes"`
}

// per divides a cost.
func (c cost) per(n float64) *Cost {
	return &Cost{
		UserMicroseconds:   round(float64(c.user)/float64(time.Microsecond)/n, 3),
		SystemMicroseconds: round(float64(c.system)/float64(time.Microsecond)/n, 3),
		Allocations:        round(float64(c.allocations)/n, 2),
		AllocatedBytes:     round(float64(c.allocated)/n, 0),
	}
}

// mark is a moment in a run.
type mark struct {
	usage Usage
	cost  cost
}

// mark returns the present moment.
func (r *run) mark() mark { return mark{r.db.Usage(), spentSoFar().minus(r.aside)} }

// resident measures memory; what that costs is not counted.
func (r *run) resident() int64 {
	before := spentSoFar()
	bytes := resident()
	r.aside = r.aside.plus(spentSoFar().minus(before))
	return bytes
}

// spent fills in the cost per future since before.
func (r *run) spent(before mark, futures int) {
	now, n := r.mark(), float64(futures)
	u := now.usage.minus(before.usage)
	r.report.TransactionsPerFuture = round(float64(u.Commits)/n, 4)
	r.report.MutationsPerFuture = round(float64(u.Mutations)/n, 2)
	r.report.ReadsPerFuture = round(float64(u.Reads)/n, 2)
	conflicts := 0.0
	if all := u.Commits + u.Conflicts; all > 0 {
		conflicts = round(float64(u.Conflicts)/float64(all), 4)
	}
	r.report.ConflictsPerCommit = &conflicts
	r.report.PerFuture = now.cost.minus(before.cost).per(n)
}
