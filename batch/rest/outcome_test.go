package rest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func TestABatchWithoutItemsIsEmpty(t *testing.T) {
	t.Parallel()
	o := outcomeOf(&batch.Batch{Status: batch.Done}, batch.Progress{})
	require.Equal(t, outcome{"empty", "204", "the batch has no items", 200}, o)
}
