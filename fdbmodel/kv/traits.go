package kv

import "context"

// Traits describe how one Database differs from others. The zero value
// describes a store that several processes reach directly, such as
// FoundationDB.
type Traits struct {
	// Exclusive is set if only this process can reach the store, so every
	// process that used it before this opening has ended.
	Exclusive bool

	// Opening names this opening of the store. No two openings that commit have the
	// same name. It is empty if openings don't matter. Through a connection it is
	// the opening that was reached last, and changes with it.
	Opening string

	// Connection names this Database among all that reach the store through the
	// process that has it open. It is empty in that process. The name survives
	// a reconnect.
	Connection string

	// WaitConflict returns when readers of the store see a version above the
	// read version of tx, which ended with ErrConflict. It is nil if the store
	// can't tell; Transact then backs off instead.
	WaitConflict func(ctx context.Context, tx Tx) error

	// ReadsAtOnce reports whether the reads of a transaction with o that begins now wait for no other
	// transaction, and for no server. It is nil if the store can't tell.
	ReadsAtOnce func(o Options) bool

	// Snapshot opens what the store holds now as a store of its own, for reads that take longer than TxLifetime: its
	// transactions may take weeks. What is committed to it is lost. Close removes it. It is nil where the store
	// has none.
	Snapshot func(ctx context.Context) (Database, error)

	// Unwritable is why the last commit that tried could not write the store, an ErrReadOnly
	// with the way out, until another one can. It is nil before a commit has tried, and in
	// a process that reaches the store through another one, which alone knows it:
	// inspect.Unwritable asks.
	Unwritable error
}

// OwnOpening is the present opening of a store that this process has open itself, empty where another one has, or
// where openings don't matter.
func (t Traits) OwnOpening() string {
	if t.Connection != "" {
		return ""
	}
	return t.Opening
}

// TraitsOf returns the result of db's method Traits, or the zero value if db
// has no such method. A wrapper that embeds a Database has to pass the traits
// on.
func TraitsOf(db Database) Traits {
	if t, ok := db.(interface{ Traits() Traits }); ok {
		return t.Traits()
	}
	return Traits{}
}
