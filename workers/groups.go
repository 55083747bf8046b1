package workers

import "github.com/futura-run/futura/fdbmodel"

// groupUse is what the worker holds of a group whose futures may not all run at
// a time.
type groupUse struct {
	limit   int
	running int
	queued  int
}

// groups are the groups with a limit of which the worker holds something.
// Everything is called under the slots' mu.
type groups map[string]*groupUse

// limited returns a future's group and its limit, 0 if it has none.
func limited(f *fdbmodel.ClaimedFuture) (group string, limit int) {
	if f.Spec == nil {
		return "", 0
	}
	return f.Spec.Owner, f.Spec.Parallel
}

// queue takes note that a future came, or with -1 that it is no longer queued.
func (g groups) queue(f *fdbmodel.ClaimedFuture, n int) {
	g.change(f, n, 0)
}

// start takes note that a queued future runs, and end that it does not any more.
func (g groups) start(f *fdbmodel.ClaimedFuture) { g.change(f, -1, 1) }
func (g groups) end(f *fdbmodel.ClaimedFuture)   { g.change(f, 0, -1) }

func (g groups) change(f *fdbmodel.ClaimedFuture, queued, running int) {
	name, limit := limited(f)
	if limit == 0 {
		return
	}
	use := g[name]
	if use == nil {
		use = &groupUse{}
		g[name] = use
	}
	// Futures of one group may say different things: the last one counts.
	use.limit = limit
	use.queued += queued
	use.running += running
	if use.queued == 0 && use.running == 0 {
		delete(g, name)
	}
}

// mayRun tells whether a queued future's group leaves it room.
func (g groups) mayRun(f *fdbmodel.ClaimedFuture) bool {
	name, limit := limited(f)
	use := g[name]
	return limit == 0 || use == nil || use.running < use.limit
}

// blocked is how many queued futures wait for others of their group only.
func (g groups) blocked() (n int) {
	for _, use := range g {
		n += max(0, use.queued-max(0, use.limit-use.running))
	}
	return n
}

// full returns the groups of which the worker wants no more for now: one waits
// already for its turn.
func (g groups) full() map[string]bool {
	var full map[string]bool
	for name, use := range g {
		if use.queued > 0 && use.running >= use.limit {
			if full == nil {
				full = map[string]bool{}
			}
			full[name] = true
		}
	}
	return full
}
