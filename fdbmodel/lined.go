package fdbmodel

import (
	"maps"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// linedKey is where a transaction of the caller remembers futures that its submits to a cluster have put in line:
// their rows have its versionstamp, so that it can't read them.
type linedKey struct{ cluster string }

func (c *Cluster) linedKey() linedKey { return linedKey{string(c.keys.All().Begin)} }

// linedIn returns the futures that earlier submits of a transaction have put in line.
func (c *Cluster) linedIn(tx kv.Tx) map[layout.ID]*layout.Row {
	local := kv.LocalOf(tx)
	if local == nil {
		return nil
	}
	rows, _ := local.Value(c.linedKey()).(map[layout.ID]*layout.Row)
	return rows
}

// rememberLined remembers those of some futures that a submit has put in line.
func (c *Cluster) rememberLined(tx kv.Tx, rows map[int]*layout.Row) {
	local := kv.LocalOf(tx)
	if local == nil {
		return
	}
	all := maps.Clone(c.linedIn(tx))
	for _, row := range rows {
		if row.Line == nil {
			continue // it was admitted
		}
		if all == nil {
			all = map[layout.ID]*layout.Row{}
		}
		all[row.ID] = row
	}
	if all != nil {
		local.Set(c.linedKey(), all)
	}
}
