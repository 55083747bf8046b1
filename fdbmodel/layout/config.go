package layout

import (
	"cmp"
	"fmt"
	"time"
)

// Config holds the settings that all processes of a cluster must agree on. The
// first process to open the cluster writes it, and all later ones obey it.
// Configure changes it.
type Config struct {
	// Format is the version of the key layout. A newer one is ErrNewerRecord.
	Format int `msgpack:"f" json:"format"`
	// Shards is a power of two from 1 to 256 that spreads the hot keys. Order
	// and priority hold within a shard. Defaults to 16, and to 1 for a store
	// that one process opens, where there is nothing to spread over.
	Shards int `msgpack:"s" json:"shards"`
	// Heartbeat is the interval between a worker's heartbeats. Defaults to 5 s.
	Heartbeat time.Duration `msgpack:"h" json:"heartbeat_ns"`
	// DeadAfter is how long a heartbeat may go unchanged, by the observer's own
	// clock, before the worker is declared dead. Defaults to 3 heartbeats.
	DeadAfter time.Duration `msgpack:"d" json:"dead_after_ns"`
	// Retention is how long finished futures are kept. Defaults to 24 h.
	Retention time.Duration `msgpack:"r" json:"retention_ns"`
	// InfeasibleAfter is how long a future may wait in the pool while there are
	// workers and none of them could ever run it; then it fails as infeasible.
	// Defaults to for ever.
	InfeasibleAfter time.Duration `msgpack:"i,omitempty" json:"infeasible_after_ns,omitempty"`
	// Incarnation counts how often the cluster was copied to another store: stamps of
	// one store mean nothing in another, so that what has an order by them begins with
	// this number. It is not for Configure.
	Incarnation int64 `msgpack:"n,omitempty" json:"incarnation,omitempty"`
	// Policy is what futures may ask for. Defaults to no limits.
	Policy Policy `msgpack:"p,omitempty" json:"policy,omitzero"`
}

const (
	KeyspaceFormat    = 3
	DefaultShards     = 16
	maxShards         = 256
	defaultHeartbeat  = 5 * time.Second
	heartbeatsToDeath = 3
	defaultRetention  = 24 * time.Hour
)

// WithDefaults returns the config with its empty fields filled in.
func (c Config) WithDefaults() Config {
	c.Format = cmp.Or(c.Format, KeyspaceFormat)
	c.Shards = cmp.Or(c.Shards, DefaultShards)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.DeadAfter = cmp.Or(c.DeadAfter, heartbeatsToDeath*c.Heartbeat)
	c.Retention = cmp.Or(c.Retention, defaultRetention)
	return c
}

// Validate returns ErrBadConfig for invalid settings, ErrNewerRecord for a
// newer format and ErrOldFormat for an older one.
func (c Config) Validate() error {
	switch {
	case c.Format > KeyspaceFormat:
		return fmt.Errorf("cluster has keyspace format %d, this process reads %d: %w",
			c.Format, KeyspaceFormat, ErrNewerRecord)
	case c.Format < KeyspaceFormat:
		return fmt.Errorf("cluster has keyspace format %d, this process reads %d: %w", c.Format, KeyspaceFormat, ErrOldFormat)
	case c.Shards < 1 || c.Shards > maxShards || c.Shards&(c.Shards-1) != 0:
		return fmt.Errorf("%w: %d shards: use a power of two from 1 to %d", ErrBadConfig, c.Shards, maxShards)
	case c.Heartbeat < time.Millisecond || c.DeadAfter/2 < c.Heartbeat: // twice the heartbeat may overflow
		return fmt.Errorf("%w: heartbeat %v, dead after %v: the second must be at least twice the first",
			ErrBadConfig, c.Heartbeat, c.DeadAfter)
	case c.Retention < 0:
		return fmt.Errorf("%w: retention %v is negative", ErrBadConfig, c.Retention)
	case c.InfeasibleAfter != 0 && c.InfeasibleAfter < c.DeadAfter:
		return fmt.Errorf("%w: infeasible after %v: use at least the dead-after time, %v, or 0 for never", ErrBadConfig,
			c.InfeasibleAfter, c.DeadAfter)
	}
	return c.Policy.Validate()
}

// IncomingRecord marks a cluster that is being copied into: it can't be opened.
// Each transaction of the copy changes it, so that no transaction is written
// twice, and none of a copy that was replaced.
type IncomingRecord struct {
	Writer string `msgpack:"w" json:"writer"` // of this copy
	Batch  int64  `msgpack:"n,omitempty" json:"batch"`
	At     int64  `msgpack:"t" json:"at_ms"`
	// Rows is set if it may have written rows outside of clusters.
	Rows bool `msgpack:"r,omitempty" json:"rows,omitempty"`
}
