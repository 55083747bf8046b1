package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

func TestEachErrorHasOneCode(t *testing.T) {
	t.Parallel()
	problemOf := func(err error) *stack.Problem { return stack.ProblemOf(httpapi.Errors(), err) }
	table := append(httpapi.Errors(), stack.ErrorCode{Err: context.DeadlineExceeded, Status: 504, Code: "timeout"},
		stack.ErrorCode{Err: context.Canceled, Status: stack.StatusClosed, Code: "client_gone"})
	page, err := os.ReadFile("../../docs/reference/http.md")
	require.NoError(t, err)
	for _, c := range table {
		require.True(t, c.Status == stack.StatusClosed || strings.Contains(string(page), "`"+c.Code+"`"), c.Code)
		p := problemOf(fmt.Errorf("somewhere: %w", c.Err))
		require.Equal(t, c.Status, p.Status)
		require.Equal(t, c.Code, p.Code)
		require.NotEmpty(t, p.Title)
		require.ErrorIs(t, p, c.Err)
		require.Equal(t, p, problemOf(fmt.Errorf("again: %w", p)))
	}
	require.Equal(t, "unknown_result", problemOf(errors.Join(context.Canceled, kv.ErrUnknownResult)).Code,
		"that it may have happened matters most")
	require.Equal(t, "internal", problemOf(errors.New("odd")).Code)
}
