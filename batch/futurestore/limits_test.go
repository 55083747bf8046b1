package futurestore_test

import (
	"strings"
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

// TestOutlinesOfResultsInPieces reads the beginning of a value of many pieces.
func TestOutlinesOfResultsInPieces(t *testing.T) {
	t.Parallel()
	d := newData(t)
	s := &store{futurestore.New(d.cluster, futurestore.Options{}), d}
	b := batch.Batch{ID: uuid.NewString(), Template: suiteFunction, MaxAttempts: 1}
	require.NoError(t, s.Create(t.Context(), &b, [][]string{{"a"}}))
	c := batch.Chunk{ID: uuid.NewString(), Batch: b.ID, Worker: "w"}
	_, err := s.Assign(t.Context(), &c, []int{0})
	require.NoError(t, err)
	large := strings.Repeat("0123456789", 50_000)
	execute(t, s, c, []batch.Completion{{Result: batch.Result{Stdout: large, Stderr: "said"}}})
	found, err := s.Outline(t.Context(), b.ID, 0, 1, 15)
	require.NoError(t, err)
	require.Equal(t, "012345678901234", found[0].Result.Stdout)
	require.Equal(t, "said", found[0].Result.Stderr)
	require.EqualValues(t, len(large)-15, found[0].LeftOut)
}
