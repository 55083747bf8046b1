package wasm

import "container/list"

// lru is a map that keeps the entries used last, as many as its budget holds.
type lru[V any] struct {
	budget  int64
	used    int64
	order   *list.List // of *lruEntry[V], the one used last in front
	entries map[string]*list.Element
}

type lruEntry[V any] struct {
	key   string
	value V
	cost  int64
}

func newLRU[V any](budget int64) *lru[V] {
	return &lru[V]{budget: budget, order: list.New(), entries: map[string]*list.Element{}}
}

func (l *lru[V]) get(key string) (V, bool) {
	element, ok := l.entries[key]
	if !ok {
		var none V
		return none, false
	}
	l.order.MoveToFront(element)
	return element.Value.(*lruEntry[V]).value, true
}

func (l *lru[V]) has(key string) bool {
	_, ok := l.entries[key]
	return ok
}

// put adds an entry and returns the values that made room for it. The entry
// itself stays, whatever it costs.
func (l *lru[V]) put(key string, value V, cost int64) (evicted []V) {
	if old, ok := l.entries[key]; ok {
		evicted = append(evicted, l.drop(old))
	}
	l.entries[key] = l.order.PushFront(&lruEntry[V]{key: key, value: value, cost: cost})
	l.used += cost
	for l.used > l.budget && l.order.Len() > 1 {
		evicted = append(evicted, l.drop(l.order.Back()))
	}
	return evicted
}

// take removes an entry and returns its value.
func (l *lru[V]) take(key string) (value V, ok bool) {
	element, ok := l.entries[key]
	if ok {
		value = l.drop(element)
	}
	return value, ok
}

// clear removes every entry and returns the values.
func (l *lru[V]) clear() (values []V) {
	for l.order.Len() > 0 {
		values = append(values, l.drop(l.order.Back()))
	}
	return values
}

func (l *lru[V]) drop(element *list.Element) V {
	entry := l.order.Remove(element).(*lruEntry[V])
	delete(l.entries, entry.key)
	l.used -= entry.cost
	return entry.value
}
