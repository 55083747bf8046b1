package embedded

import "github.com/tidwall/btree"

func (l *loader) newRow(key, value []byte) (entry row) {
	entry, l.index.scratch = newRow(l.index.scratch, key, value)
	return entry
}

// append adds a row behind all others.
func (l *loader) append(key, value []byte, file uint64) {
	if len(value) < l.index.largeValue {
		l.index.tree.Load(l.newRow(key, value))
	} else {
		entry := row{key: string(key), head: &revision{value: view(value)}}
		shelve(entry.head, file)
		l.index.shelvedBytes += int64(len(value))
		l.index.tree.Load(entry)
	}
	l.count(1, len(key)+len(value))
}

func (l *loader) set(key, value []byte) {
	previous, replaced := l.index.tree.SetHint(l.newRow(key, value), &l.index.hint)
	l.index.countLarge(len(value))
	l.count(1, len(key)+len(value))
	if replaced {
		l.forget(previous)
	}
}

func (l *loader) clear(key []byte) {
	if previous, found := l.index.tree.DeleteHint(row{key: view(key)}, &l.index.hint); found {
		l.forget(previous)
	}
}

func (l *loader) clearRange(begin, end []byte) {
	limit := view(end)
	l.index.tree.DeleteAscend(row{key: view(begin)}, func(entry row) btree.Action {
		if entry.key >= limit {
			return btree.Stop
		}
		l.forget(entry)
		return btree.Delete
	})
}

func (l *loader) forget(entry row) { l.index.lose(entry.key, entry.head) }

func (l *loader) count(rows, bytes int) {
	l.index.liveKeys += int64(rows)
	l.index.liveBytes += int64(bytes)
}
