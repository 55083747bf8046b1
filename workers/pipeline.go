package workers

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// A pipeline is the slots of a worker whose functions run elsewhere. What may wait for a
// slot is sent there at once, so that the way back and forth costs no time: more jobs run
// than there are slots, as many as would be claimed ahead.

// credit is how many jobs may be started beyond the slots. It is called under mu.
func (s *slots) credit() int {
	if !s.pipeline {
		return 0
	}
	return s.ahead()
}

// beyond is how many jobs were started beyond the slots. It is called under mu.
func (s *slots) beyond() int { return max(0, -s.open()) }

// surplus is by how much more than its limit of an owner may be started: flat, and each for
// each that may run at a time, but most at most.
type surplus struct{ flat, each, most int }

// of is how many of an owner may be started.
func (x surplus) of(limit int) int { return limit + min(x.flat+x.each*limit, x.most) }

// extra is how many more jobs of one owner may be started than its limit says: as many as
// would be claimed ahead, if they wait for each other where they run. Where limits are kept
// beside other jobs, that is as many as will have started within aheadTime by their limit.
// It is called under mu.
func (s *slots) extra() surplus {
	switch {
	case s.serial:
		return surplus{flat: s.ahead(), most: aheadMax}
	case s.limiter && s.pace > 0:
		return surplus{each: int(aheadTime / s.pace), most: s.ahead()}
	default:
		return surplus{}
	}
}

// startable is what a job may use that starts now. It is called under mu.
func (s *slots) startable() layout.Resources {
	free := s.free
	free.Slots = s.open() + s.credit()
	return free
}

// served is for how long a job has used its slot, of the time that it took from its start
// to its end: as long as it ran elsewhere, if that is known. It is called under mu.
func (s *slots) served(j *job, took time.Duration) time.Duration {
	if elsewhere := time.Duration(j.ranElsewhere.Load()); s.pipeline && elsewhere > 0 {
		return min(took, elsewhere)
	}
	return took
}
