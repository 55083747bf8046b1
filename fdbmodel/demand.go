package fdbmodel

// demand is what futures in the pool ask of a worker.
type demand struct {
	queue, function string
	cpu, ram, gpu   int64
}

func (d demand) requirements() Requirements { return Requirements{CPU: d.cpu, RAM: d.ram, GPU: d.gpu} }

// demands counts futures that came into the pool, by what they ask for.
type demands map[demand]int

func (d *demands) add(s *Spec) {
	if *d == nil {
		*d = demands{}
	}
	r := &s.Requirements
	(*d)[demand{s.Queue, s.Function, r.CPU, r.RAM, r.GPU}]++
}

func (d *demands) addAll(others demands) {
	for demand, n := range others {
		if *d == nil {
			*d = demands{}
		}
		(*d)[demand] += n
	}
}

// take takes one future that fits, of a queue, and tells whether there was one.
func (d demands) take(queue string, fits func(demand) bool) bool {
	for demand, n := range d {
		if n > 0 && demand.queue == queue && fits(demand) {
			d[demand]--
			return true
		}
	}
	return false
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

// idleRecord is what an idle worker could take.
type idleRecord struct {
	Resources `msgpack:",inline"` // that are free
	// Functions are what it runs, as in WorkerInfo; empty if they are many.
	Functions []string `msgpack:"f,omitempty" json:"functions,omitempty"`
}

// maxIdleFunctions bounds the names in an idleRecord, in bytes.
const maxIdleFunctions = 2 << 10

func idleRecordOf(info *WorkerInfo, free Resources) *idleRecord {
	size := 0
	for _, f := range info.Functions {
		size += len(f)
	}
	if size > maxIdleFunctions {
		return &idleRecord{Resources: free}
	}
	return &idleRecord{Resources: free, Functions: info.Functions}
}

// fits tells whether the worker may be able to take a future.
func (r *idleRecord) fits(d demand) bool {
	info := WorkerInfo{Functions: r.Functions}
	return r.Fit(d.requirements()) && (len(r.Functions) == 0 || info.Runs(d.function))
}
