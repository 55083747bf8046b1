package workers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
)

// TestAttemptsWithoutInputs end as what is wrong with the inputs says: for good only if it can't mend.
func TestAttemptsWithoutInputs(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{}, clock.NewVirtual(epoch))
	w, err := FromCluster(b.cluster, Options{Slots: 1})
	require.NoError(t, err)
	for _, c := range []struct {
		err  error
		want fdbmodel.Completion
		kind layout.FailureKind
	}{
		{results.ErrLost, fdbmodel.Completion{Block: true}, ""},
		{errAgain, fdbmodel.Completion{Block: true}, ""},
		{fdbmodel.ErrUnreachable, fdbmodel.Completion{Reject: true}, ""},
		{errInput, fdbmodel.Completion{Permanent: true}, layout.KindUpstream},
		{reference.ErrTooLarge, fdbmodel.Completion{Permanent: true}, layout.KindTooLarge},
		{reference.ErrUndecodable, fdbmodel.Completion{Permanent: true}, layout.KindError},
		{reference.ErrBadReference, fdbmodel.Completion{Permanent: true}, layout.KindError},
		{layout.ErrBadRecord, fdbmodel.Completion{Permanent: true}, layout.KindError},
		{layout.ErrNewerRecord, fdbmodel.Completion{Relinquish: true}, ""},
	} {
		j, wrapped := &job{}, fmt.Errorf("input: %w", c.err)
		if c.want.Future = &j.future; c.kind != "" {
			c.want.Exception = &layout.Exception{Kind: c.kind, Message: wrapped.Error()}
		}
		require.Equal(t, c.want, w.withoutInputs(j, wrapped), "%v", c.err)
	}
}

// TestInputsAreBounded joins inputs of five bytes, and finds some that have no result.
func TestInputsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t, layout.Config{}, clock.NewVirtual(epoch))
	w, err := FromCluster(b.cluster, Options{Slots: 1})
	require.NoError(t, err)
	j, ids := &job{membership: &membership{}, ctx: b.ctx}, []layout.ID{{1}, {2}}
	token := layout.Token{Worker: "w", Sequence: 1}
	realized := func(id layout.ID, value string) layout.Row {
		return layout.Row{ID: id, Spec: &layout.Spec{}, Claim: &layout.Claim{Token: token},
			Result: &layout.Result{Token: token, Value: []byte(value), Size: int64(len(value))}}
	}
	j.future.Inputs = []layout.Row{realized(ids[0], "abc"), realized(ids[1], "de")}
	all, err := w.joined(j, ids, 5)
	require.NoError(t, err)
	require.Equal(t, "abcde", string(all))
	_, err = w.joined(j, ids, 4)
	require.ErrorIs(t, err, reference.ErrTooLarge)
	_, err = w.joined(j, append(ids, layout.ID{3}), 5)
	require.ErrorIs(t, err, errInput, "it is gone")
	j.future.Inputs[1].Result = nil
	_, err = w.joined(j, ids, 5)
	require.ErrorIs(t, err, errAgain)
}
