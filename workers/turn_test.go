package workers

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// TestATurnWhoseCallFailsIsDropped has middleware turn the error of a function into a result: what the
// function made of actors, and sent, does not come with it.
func TestATurnWhoseCallFailsIsDropped(t *testing.T) {
	t.Parallel()
	b := realBed(t)
	swallow := func(next Call) Call {
		return func(ctx context.Context, args []byte) ([]byte, error) {
			_, _ = next(ctx, args)
			return []byte("done"), nil
		}
	}
	b.start(Options{Slots: 1, Middleware: []Middleware{swallow}}, map[string]Function{
		"f": func(ctx context.Context, _ []byte) ([]byte, error) {
			turn := ctx.Value(taskcontext.TurnKey{}).(taskcontext.Turn)
			subs, err := b.cluster.Prepare(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}})
			if err != nil {
				return nil, err
			}
			return nil, errors.Join(turn.Submit(subs), errors.New("failed"))
		},
	})
	id := b.one("go:f")
	b.awaitOver(id)
	counts := b.counts()
	require.Equal(t, []int64{1, 0, 0}, []int64{counts[layout.Realized], counts[layout.Ready], counts[layout.Claimed]})
}
