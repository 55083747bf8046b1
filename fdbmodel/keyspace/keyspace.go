package keyspace

import (
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// Table returns the table of all kinds of keys of a cluster.
func Table() *layout.Table { return table() }

var table = sync.OnceValue(func() *layout.Table {
	return layout.NewTable(
		fdbmodel.Kinds(),
		schedule.Kinds(),
		quota.Kinds(),
		joblog.Kinds(),
		promises.Kinds(),
		actors.Kinds(),
	)
})
