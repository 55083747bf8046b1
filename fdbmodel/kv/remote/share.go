package remote

import "github.com/futura-run/futura/fdbmodel/kv"

// Share returns db as the serving process itself should use it while others
// reach it through Serve: it is not exclusive, so that work that others submit
// wakes the process's own workers, and others' workers are not taken for those
// of an earlier opening. Closing it closes db. Serve takes either.
func Share(db kv.Database) kv.Database { return shared{db} }

type shared struct{ kv.Database }

// Traits returns those of the store, which is not exclusive.
func (s shared) Traits() kv.Traits {
	traits := kv.TraitsOf(s.Database)
	traits.Exclusive = false
	return traits
}
