package futurestore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestEndingsInTheShapesOfB7s(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state   layout.State
		result  *layout.Result
		failure *layout.Exception
		code    int
		want    batch.Result
		reason  string
	}{
		{layout.Realized, &layout.Result{Value: []byte("out"), Stderr: []byte("err")}, nil,
			200, batch.Result{Stdout: "out", Stderr: "err"}, ""},
		{layout.Failed, nil, &layout.Exception{
			Kind: layout.KindExit, Message: "exit code 3", ExitCode: 3, Stdout: []byte("out"), Stderr: []byte("err"),
		}, 500, batch.Result{Stdout: "out", Stderr: "err", ExitCode: 3}, "exit code 3"},
		{layout.Failed, nil, &layout.Exception{Kind: layout.KindTimeout, Message: "too slow"},
			408, batch.Result{Stderr: "too slow", ExitCode: batch.NoExitCode}, "timeout: too slow"},
		{layout.Failed, nil, &layout.Exception{Kind: layout.KindCancelled, Message: "enough", ExitCode: 3},
			410, batch.Result{Stderr: "enough", ExitCode: 3}, "enough"},
		{layout.Delayed, nil, &layout.Exception{Kind: layout.KindPanic, Message: "oh"},
			202, batch.Result{Stderr: "oh", ExitCode: batch.NoExitCode}, "panic: oh"},
	} {
		e := &layout.Ending{State: c.state, Result: c.result, Failure: c.failure}
		require.Equal(t, c.code, futurestore.CodeOf(e))
		require.Equal(t, c.want, futurestore.ResultOf(e))
		if c.failure != nil {
			require.Equal(t, c.reason, futurestore.ReasonOf(c.failure))
		}
	}
}
