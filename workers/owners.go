package workers

import "github.com/futura-run/futura/fdbmodel"

// ownerUse is what the worker holds of an owner whose futures may not all run at
// a time.
type ownerUse struct {
	limit   int
	running int
	queued  int
}

// owners are the owners with a limit of which the worker holds something.
// Everything is called under the slots' mu.
type owners map[string]*ownerUse

// limited returns a future's owner and its limit, 0 if it has none.
func limited(f *fdbmodel.ClaimedFuture) (owner string, limit int) {
	if f.Spec == nil {
		return "", 0
	}
	return f.Spec.Owner, f.Spec.Parallel
}

// queue records that a future is queued, or with -1 that it no longer is.
func (g owners) queue(f *fdbmodel.ClaimedFuture, n int) {
	g.change(f, n, 0)
}

// start records that a queued future runs, and end that it has stopped.
func (g owners) start(f *fdbmodel.ClaimedFuture) { g.change(f, -1, 1) }
func (g owners) end(f *fdbmodel.ClaimedFuture)   { g.change(f, 0, -1) }

func (g owners) change(f *fdbmodel.ClaimedFuture, queued, running int) {
	name, limit := limited(f)
	if limit == 0 {
		return
	}
	use := g[name]
	if use == nil {
		use = &ownerUse{}
		g[name] = use
	}
	// Futures of one owner may say different things: the last one counts.
	use.limit = limit
	use.queued += queued
	use.running += running
	if use.queued == 0 && use.running == 0 {
		delete(g, name)
	}
}

// mayRun reports whether a queued future's owner leaves it room. extra is by how much
// more may be started than limits say.
func (g owners) mayRun(f *fdbmodel.ClaimedFuture, extra surplus) bool {
	name, limit := limited(f)
	use := g[name]
	return limit == 0 || use == nil || use.running < extra.of(use.limit)
}

// blocked is how many queued futures wait for others of their owner only.
func (g owners) blocked(extra surplus) (n int) {
	for _, use := range g {
		n += max(0, use.queued-max(0, extra.of(use.limit)-use.running))
	}
	return n
}

// full returns the owners of which the worker wants no more for now: one waits
// already for its turn.
func (g owners) full(extra surplus) map[string]bool {
	var full map[string]bool
	for name, use := range g {
		if use.queued > 0 && use.running >= extra.of(use.limit) {
			if full == nil {
				full = map[string]bool{}
			}
			full[name] = true
		}
	}
	return full
}
