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

// extra is how many more jobs of one owner may be started than its limit says: as many as
// would be claimed ahead, if they wait for each other where they run. It is called under mu.
func (s *slots) extra() int {
	if !s.serial {
		return 0
	}
	return s.ahead()
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
