package storetest

import (
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Unwatched is a store that has no room for a watch. Once very many were asked for, it refuses none any more, and
// none fires: whoever asks for them all the time comes to rest, and Asked tells.
type Unwatched struct {
	kv.Database
	asked atomic.Int64
}

const veryMany = 1000

// NewUnwatched returns a store without room for watches.
func NewUnwatched(db kv.Database) *Unwatched { return &Unwatched{Database: db} }

// Asked is how many watches were asked for.
func (u *Unwatched) Asked() int { return int(u.asked.Load()) }

// Begin implements kv.Database.
func (u *Unwatched) Begin(o kv.Options) kv.Tx { return unwatchedTx{u.Database.Begin(o), u} }

type unwatchedTx struct {
	kv.Tx
	db *Unwatched
}

func (t unwatchedTx) Watch([]byte) kv.Watch {
	w := refusedWatch{make(chan struct{})}
	if t.db.asked.Add(1) < veryMany {
		close(w.done)
	}
	return w
}

type refusedWatch struct{ done chan struct{} }

func (refusedWatch) Cancel()                 {}
func (refusedWatch) Err() error              { return kv.ErrTooManyWatches }
func (w refusedWatch) Done() <-chan struct{} { return w.done }
