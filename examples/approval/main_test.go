package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApproval(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, `GET  -> 200
POST value=true -> 200
POST value=true -> 200
POST value=false -> 409
tea is ordered: true
not approved: too dear
`, out.String())
}
