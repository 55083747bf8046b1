package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeadlines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "tea is paid after 3 looks in vain, in attempt 1\n"+
		"the order of salt: deadline, its payment: deadline\nthe advert: expired\n", out.String())
}
