package jobqueue

// jobState is what a job that was started, and that the processed index has not
// passed, is doing.
type jobState uint8

const (
	running jobState = iota + 1
	waiting          // for its next attempt
	ended            // done, or to be parked
)

// window holds the states of the jobs after the processed index, a byte for each
// that was started. Its zero value begins with job 1.
type window struct {
	processed uint64
	states    []jobState
}

// next returns the lowest index that was not started.
func (w *window) next() uint64 { return w.processed + uint64(len(w.states)) + 1 }

// start adds the next job as running.
func (w *window) start() { w.states = append(w.states, running) }

// at returns the state of a job, 0 for one that was not started or was passed.
func (w *window) at(index uint64) jobState {
	if index <= w.processed || index >= w.next() {
		return 0
	}
	return w.states[index-w.processed-1]
}

// set changes the state of a job that was started.
func (w *window) set(index uint64, s jobState) { w.states[index-w.processed-1] = s }

// consecutive returns how many jobs after the processed index have ended without a
// gap, up to limit.
func (w *window) consecutive(limit int) (n int) {
	for n < min(limit, len(w.states)) && w.states[n] == ended {
		n++
	}
	return n
}

// advance passes n jobs.
func (w *window) advance(n int) {
	w.processed += uint64(n)
	w.states = w.states[n:]
	if len(w.states) == 0 {
		w.states = nil
	}
}
