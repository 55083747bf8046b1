package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

func TestStepsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	w, err := workers.New(f.client, workers.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	order := futures.Define[int, string]("order")
	reserved := 0
	require.NoError(t, w.Register(order.Bind(func(ctx context.Context, _ int) (string, error) {
		_, err := futures.Step(ctx, "reserve", func(context.Context) (string, error) {
			reserved++
			return "done", nil
		})
		return "", errors.Join(err, workers.Permanent(errors.New("sold out")))
	})))
	storetest.Background(t, w.Run)
	made, err := order.Submit(t.Context(), f.client, 1)
	require.NoError(t, err)
	_, err = made.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	at := path + "/" + made.ID().String()
	var got struct{ Steps []futures.StepView }
	f.send("GET", at+"/steps", "").Into(http.StatusOK, &got)
	require.Len(t, got.Steps, 1)
	require.Equal(t, "reserve", got.Steps[0].Name)
	require.Equal(t, int64(5), got.Steps[0].Size)
	require.Equal(t, http.StatusOK, f.send("POST", at+":retry", "").Status)
	_, err = f.client.Future(made.ID()).Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	require.Equal(t, 1, reserved)
	require.Equal(t, http.StatusOK, f.send("POST", at+":start-over", "").Status)
	_, err = f.client.Future(made.ID()).Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	require.Equal(t, 2, reserved)
	f.send("GET", path+"/01995b4e-6f3a-7c1e-9d2b-0123456789ab/steps", "").Problem(http.StatusNotFound, "not_found", "")
	f.send("GET", path+"/x/steps", "").Problem(http.StatusBadRequest, "bad_id", "")
	f.send("POST", path+"/x:start-over", "").Problem(http.StatusBadRequest, "bad_id", "")
}
