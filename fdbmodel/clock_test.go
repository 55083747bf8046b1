package fdbmodel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// stopped is a clock of an application, made of public names.
type stopped struct{ at time.Time }

func (s stopped) Now() time.Time                            { return s.at }
func (s stopped) At(time.Time) fdbmodel.Timer               { return stoppedTimer{} }
func (s stopped) AfterFunc(time.Time, func()) (stop func()) { return func() {} }

type stoppedTimer struct{}

func (stoppedTimer) C() <-chan time.Time { return nil }
func (stoppedTimer) Stop()               {}

func TestApplicationsCanBringAClock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	at := time.UnixMilli(1_900_000_000_000)
	c, err := fdbmodel.Open(ctx, storetest.New(t), "clock", fdbmodel.Options{Clock: stopped{at}})
	require.NoError(t, err)
	made, err := c.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}})
	require.NoError(t, err)
	row, err := c.Get(ctx, made[0].ID)
	require.NoError(t, err)
	require.Equal(t, layout.Millis(at), row.Spec.SubmittedAt)
}
