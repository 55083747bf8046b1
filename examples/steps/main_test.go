package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(context.Background(), "memory:", &out))
	require.Equal(t, `a flight to Oslo
no answer from Oslo
no answer from Oslo
a room in Oslo
a mail: pack for Oslo
LX Oslo, Hotel Oslo, mail sent, trip 1
1 flight in attempt 1
2 hotel in attempt 3
3 sleep in attempt 3
4 remind in attempt 3
5 count in attempt 3
`, out.String())
}
