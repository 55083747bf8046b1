package futurestore_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// TestBatchesThatExceedALimit are refused before anything is made of them.
func TestBatchesThatExceedALimit(t *testing.T) {
	t.Parallel()
	d := newData(t)
	s := futurestore.New(d.cluster, futurestore.Options{})
	_, err := quota.Of(d.cluster).Set(t.Context(), func(l *quota.Limits) { l.Pending = 5 })
	require.NoError(t, err)
	create := func(items int) (string, error) {
		b := batch.Batch{ID: uuid.NewString(), Template: suiteFunction, MaxAttempts: 1, Items: items}
		return b.ID, s.Create(t.Context(), &b, make([][]string, items))
	}
	id, err := create(4)
	require.NoError(t, err)
	var limit *quota.LimitError
	refused, err := create(2)
	require.ErrorAs(t, err, &limit)
	require.Positive(t, limit.RetryAfter)
	_, err = s.Get(t.Context(), refused)
	require.ErrorIs(t, err, batch.ErrNotFound)
	_, err = create(6)
	require.ErrorAs(t, err, &limit)
	require.Zero(t, limit.RetryAfter)
	require.Equal(t, 6, limit.Asked)
	_, used, err := quota.Of(d.cluster).Get(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, used.Pending)
	list, err := s.List(t.Context(), false, "", 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, id, list[0].ID)
}
