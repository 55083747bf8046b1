package bench

import "sync/atomic"

// Progress is how far a run is. It may be read at any time.
type Progress struct{ phase atomic.Pointer[phase] }

// phase is a part of a run.
type phase struct {
	name string
	all  int // 0 where nothing is counted
	done atomic.Int64
}

// Now returns the name of the phase, empty before a run begins, its number of
// futures, 0 where they are not counted, and how many of them are done.
func (p *Progress) Now() (phase string, done, all int) {
	at := p.phase.Load()
	if at == nil {
		return "", 0, 0
	}
	return at.name, min(int(at.done.Load()), at.all), at.all
}

// begin begins a phase over a number of futures, 0 for a phase that counts none.
func (r *run) begin(name string, all int) {
	r.progress.phase.Store(&phase{name: name, all: all})
	r.options.Log.Info(r.report.Scenario, "phase", name, "futures", all)
}

// step counts n more futures of the phase.
func (r *run) step(n int) {
	if at := r.progress.phase.Load(); at != nil {
		at.done.Add(int64(n))
	}
}
