// Package joblog stores logs of ordered jobs, and how far their consumers are: jobs get
// contiguous indexes when they are appended, one process at a time consumes them for each
// consumer, and its progress is one transaction with what the jobs have done.
package joblog

import (
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// Logs are the logs of jobs of one cluster. Its methods may be called from many
// goroutines.
type Logs struct {
	cluster *fdbmodel.Cluster
	keys    Keys
}

// Of returns the logs of jobs of a cluster.
func Of(c *fdbmodel.Cluster) *Logs { return &Logs{cluster: c, keys: Keys(c.Keys())} }

func (s *Logs) traits() kv.Traits { return kv.TraitsOf(s.cluster.Database()) }
