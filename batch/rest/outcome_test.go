package rest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func TestABatchWithoutItemsIsEmpty(t *testing.T) {
	t.Parallel()
	o := outcomeOf(&batch.Batch{Status: batch.Done}, batch.Progress{})
	require.Equal(t, outcome{"empty", "204", "the batch has no items", 200}, o)
}

func TestAStoreThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := problemOf(fmt.Errorf("read batch b: %w", batch.ErrUnavailable))
	require.Equal(t, http.StatusServiceUnavailable, p.Status)
	require.Equal(t, "store_unavailable", p.Code)
}
