package httpapi_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures/httpapi"
)

// TestIdempotencyKeysOfManyAtOnce sends the header where a request has several futures, or another way to be repeated.
func TestIdempotencyKeysOfManyAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	const key, task = "Idempotency-Key", `{"handler":"write","input":{"table":"x"}}`
	f.send("PUT", lanes+"/write", `{"bundle":"go:write","target":"/table"}`).Into(http.StatusOK, new(httpapi.LaneKind))
	for at, bodies := range map[string][3]string{
		path + ":submit": {`{"futures":[{"function":"go:f"}]}`, `{"futures":[{"function":"go:f","key":"other"}]}`,
			`{"futures":[{"function":"go:f"},{"function":"go:f"}]}`},
		tasks + ":submit": {`{"tasks":[` + task + `]}`,
			`{"tasks":[{"handler":"write","input":{"table":"x"},"key":"other"}]}`,
			`{"tasks":[` + task + `,` + task + `]}`},
	} {
		var said [2]struct{ Futures, Tasks []httpapi.Submitted }
		for i := range said {
			f.send("POST", at, bodies[0], key, at).Into(http.StatusCreated, &said[i])
		}
		first, again := append(said[0].Futures, said[0].Tasks...)[0], append(said[1].Futures, said[1].Tasks...)[0]
		require.Equal(t, first.ID, again.ID)
		require.False(t, first.Existed)
		require.True(t, again.Existed)
		f.send("POST", at, bodies[1], key, at).Problem(http.StatusBadRequest, "bad_request", "differ")
		f.send("POST", at, bodies[2], key, at).Problem(http.StatusBadRequest, "bad_request", "give each its key")
	}
	f.send("POST", "/api/v1/jobs/orders:append", `{"values":["a"]}`, key, "k").
		Problem(http.StatusBadRequest, "bad_request", "producer and sequence")
	f.send("PUT", schedules+"/s", `{"every_ms":3600000,"future":{"function":"go:f"}}`, key, "k").
		Into(http.StatusOK, new(httpapi.Schedule))
	f.send("POST", schedules+"/s:trigger", "", key, "k").
		Problem(http.StatusBadRequest, "bad_request", "can't be repeated")
}

// deaf is a store that fails once a submit has committed since it was armed.
type deaf struct {
	kv.Database
	closed      kv.Database
	armed, over atomic.Bool
}

func (d *deaf) Begin(o kv.Options) kv.Tx {
	switch {
	case d.over.Load():
		return d.closed.Begin(o)
	case o.Tag == "futura-submit":
		return &deafTx{d.Database.Begin(o), d}
	}
	return d.Database.Begin(o)
}

type deafTx struct {
	kv.Tx
	of *deaf
}

func (t *deafTx) Commit(ctx context.Context) (kv.Committed, error) {
	done, err := t.Tx.Commit(ctx)
	t.of.over.Store(err == nil && t.of.armed.Load())
	return done, err
}

// TestASubmitThatCantBeShownNamesItsFuture has the store fail right behind it.
func TestASubmitThatCantBeShownNamesItsFuture(t *testing.T) {
	t.Parallel()
	d := &deaf{Database: newMemory(t), closed: newMemory(t)}
	require.NoError(t, d.closed.Close())
	f := newFixtureOn(t, d, httpapi.Options{})
	d.armed.Store(true)
	const id = "5a3c4f6e-0d7b-4a51-8a47-3c8d7b1f2e90"
	f.send("POST", path, `{"function":"go:f","id":"`+id+`"}`).
		Problem(http.StatusServiceUnavailable, "stopping", "future "+id+" was submitted, and then")
	d.armed.Store(false)
	d.over.Store(false)
	f.send("GET", path+"/"+id, "").Into(http.StatusOK, new(httpapi.Future))
}
