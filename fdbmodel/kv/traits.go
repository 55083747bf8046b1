package kv

import "context"

// Traits is what sets one Database apart from others. The zero value is a store
// that several processes reach by themselves, as FoundationDB is.
type Traits struct {
	// Exclusive is set if only this process can reach the store, so that
	// everything that used it before this opening is gone.
	Exclusive bool

	// Opening names this opening of the store. No two openings of a store have
	// the same name. It is empty if openings don't count. Through a connection
	// it is the opening that was reached last, and changes with it.
	Opening string

	// Connection names this Database among all that reach the store through the
	// process that has it open, and is empty in that process. The name stays
	// when the connection breaks and is made again.
	Connection string

	// WaitConflict returns when the store shows its readers a version above
	// the read version of tx, which ended with ErrConflict. It is nil if the
	// store can't tell; Transact then waits for a time instead.
	WaitConflict func(ctx context.Context, tx Tx) error
}

// TraitsOf returns the traits of db: what its method Traits returns, and the
// zero value if it has none. A wrapper that embeds a Database has to pass them
// on.
func TraitsOf(db Database) Traits {
	if t, ok := db.(interface{ Traits() Traits }); ok {
		return t.Traits()
	}
	return Traits{}
}
