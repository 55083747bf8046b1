package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack/stacktest"
)

// TestAwaitSaysWhatItWaitsFor has an await that takes long tell why, once.
func TestAwaitSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	future, err := client.Submit(t.Context(), futures.Task{Function: "go:nobody"})
	require.NoError(t, err)
	said := &stacktest.Buffer{}
	a := &app{err: said, out: &bytes.Buffer{}}
	after := make(chan time.Time)
	stop := a.explainMeanwhile(t.Context(), client, future.ID(), after)
	stop()
	require.Empty(t, said.String())
	stop = a.explainMeanwhile(t.Context(), client, future.ID(), after)
	defer stop()
	after <- time.Time{}
	require.Eventually(t, func() bool { return said.String() != "" }, time.Minute, time.Millisecond)
	require.Equal(t, "futura: still waiting: future "+future.ID().String()+
		" is ready. There is no worker in the cluster. Start one.\n", said.String())
	require.NoError(t, client.Close(t.Context()))
	require.NoError(t, db.Close())
}

func TestJSONResultsEndWithALine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{out: &out, err: &out}
	require.NoError(t, a.printResult(futures.Result{Codec: layout.CodecJSON, Value: []byte("[1]")}, nil))
	require.NoError(t, a.printResult(futures.Result{Codec: layout.CodecRaw, Value: []byte("raw")}, nil))
	require.Equal(t, "[1]\nraw", out.String())
}
