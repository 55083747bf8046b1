package keyspace

import (
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Table returns the table of all kinds of keys of a cluster.
func Table() *layout.Table { return table() }

var table = sync.OnceValue(func() *layout.Table {
	return layout.NewTable(
		fdbmodel.Kinds(),
		joblog.Kinds(),
	)
})
