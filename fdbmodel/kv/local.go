package kv

// Local is what code above a store remembers of one attempt at a transaction, such as what it has written and
// can't read back. It lives as long as the attempt, and belongs to its goroutine.
type Local struct {
	values map[any]any
	order  uint16
	failed error
}

// Fail keeps the attempt from committing: it ends with the first of such errors, whatever else happens in it. Call it
// when a part of what belongs together was written.
func (l *Local) Fail(err error) {
	if l.failed == nil {
		l.failed = err
	}
}

// Failed returns the first error that Fail was called with.
func (l *Local) Failed() error { return l.failed }

// NextOrder returns a larger number each time, from 0: keys with the versionstamp of the transaction differ by it.
func (l *Local) NextOrder() uint16 {
	l.order++
	return l.order - 1
}

// Value returns what was set for a key, nil for nothing.
func (l *Local) Value(key any) any { return l.values[key] }

// Set sets the value of a key. Keys are as those of contexts: of types of their own.
func (l *Local) Set(key, value any) {
	if l.values == nil {
		l.values = map[any]any{}
	}
	l.values[key] = value
}

// LocalOf returns what is remembered of a transaction, nil if it has no place for that: those of Transact have,
// and those that a driver wraps for its users.
func LocalOf(tx Tx) *Local {
	if t, has := tx.(interface{ Local() *Local }); has {
		return t.Local()
	}
	return nil
}

// Fail keeps a transaction from committing, with an error of its own where it has a place for that, and
// otherwise with that of a key that is too large.
func Fail(tx Tx, err error) {
	if local := LocalOf(tx); local != nil {
		local.Fail(err)
		return
	}
	tx.Set(make([]byte, MaxKeySize+1), nil)
}
