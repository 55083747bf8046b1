package kv

// Local is what code above a store remembers of one attempt at a transaction, such as what it has written and
// can't read back. It lives as long as the attempt, and belongs to its goroutine.
type Local struct {
	values map[any]any
	order  uint16
}

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
