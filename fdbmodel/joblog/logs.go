// Package joblog stores logs of ordered jobs, and how far their consumers are: jobs get
// contiguous indexes when they are appended, one process at a time consumes them for each
// consumer, and its progress is one transaction with what the jobs have done.
package joblog

import (
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// Logs are the logs of jobs of one cluster. Its methods may be called from many
// goroutines.
type Logs struct {
	cluster *fdbmodel.Cluster
	keys    Keys
	// looked has by the names of logs the keys of the producers up to which Trim has looked, nil for those whose
	// first is the next.
	looked sync.Map
}

// Of returns the logs of jobs of a cluster.
func Of(c *fdbmodel.Cluster) *Logs {
	type key struct{}
	return c.Room(key{}, func() any { return &Logs{cluster: c, keys: Keys(c.Keys())} }).(*Logs)
}

func (s *Logs) traits() kv.Traits { return kv.TraitsOf(s.cluster.Database()) }
