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

func TestForksOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	w, err := workers.New(f.client, workers.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	order := futures.Define[int, string]("order")
	require.NoError(t, w.Register(order.Bind(func(ctx context.Context, _ int) (string, error) {
		_, err := futures.Step(ctx, "reserve", func(context.Context) (string, error) { return "done", nil })
		paid, failed := futures.Step(ctx, "charge", func(context.Context) (string, error) {
			return "", workers.Permanent(errors.New("card declined"))
		})
		return paid, errors.Join(err, failed)
	})))
	storetest.Background(t, w.Run)
	made, err := order.Submit(t.Context(), f.client, 1)
	require.NoError(t, err)
	_, err = made.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	at := path + "/" + made.ID().String()
	var one futures.Forked
	f.send("POST", at+":fork", `{"set": {"charge": "by hand"}, "name": "fix"}`).Into(http.StatusCreated, &one)
	require.Equal(t, made.ID(), one.Source)
	text, err := order.Of(f.client.Future(one.ID)).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "by hand", text)
	f.send("POST", at+":fork", `{"name": "fix", "set": {"charge": "by hand"}}`).Into(http.StatusOK, &one)
	f.send("POST", at+":fork", `{"name": "fix"}`).Problem(http.StatusConflict, "forked_otherwise", "other values")
	require.True(t, one.Existed)
	var list struct {
		Forks []futures.Forked
		Next  string
	}
	f.send("GET", at+"/forks", "").Into(http.StatusOK, &list)
	require.Len(t, list.Forks, 1)
	require.Empty(t, list.Next)
	f.send("GET", at+"/forks?after="+one.ID.String(), "").Into(http.StatusOK, &list)
	require.Empty(t, list.Forks)
	var view httpapi.Future
	f.send("GET", path+"/"+one.ID.String(), "").Into(http.StatusOK, &view)
	require.Equal(t, made.ID(), view.Fork.Source)

	var many httpapi.ForkedMany
	f.send("POST", path+":fork?function=go:order&error=declined&preview=true", "").Into(http.StatusOK, &many)
	require.Equal(t, [2]int{1, 1}, [2]int{many.Matched, many.Forked})
	f.send("POST", path+":fork?function=go:order", `{"name": "fix", "set": {"charge": "by hand"}}`).
		Into(http.StatusOK, &many)
	require.Equal(t, [2]int{0, 1}, [2]int{many.Forked, many.Existed})
	require.Empty(t, many.Cursor)
	second, err := order.Submit(t.Context(), f.client, 2)
	require.NoError(t, err)
	_, err = second.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	f.send("POST", path+":fork?function=go:order&limit=1&preview=true", "").Into(http.StatusOK, &many)
	require.Equal(t, 1, many.Matched)
	require.Empty(t, many.Cursor, "as many as were asked for")
	var page struct{ Cursor string }
	f.send("GET", path+"?state=failed&limit=1", "").Into(http.StatusOK, &page)
	require.NotEmpty(t, page.Cursor)
	f.send("POST", path+":fork?state=failed&preview=true&cursor="+page.Cursor, "").Into(http.StatusOK, &many)
	require.Equal(t, 1, many.Matched, "those behind the cursor")
	var labelled struct{ Futures []httpapi.Future }
	f.send("GET", path+"?label=fix", "").Into(http.StatusOK, &labelled)
	require.Len(t, labelled.Futures, 1)
	require.Equal(t, one.ID, labelled.Futures[0].ID)

	missing := path + "/01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	f.send("POST", missing+":fork", "").Problem(http.StatusNotFound, "not_found", "")
	f.send("GET", missing+"/forks", "").Problem(http.StatusNotFound, "not_found", "")
	f.send("POST", path+"/x:fork", "").Problem(http.StatusBadRequest, "bad_id", "")
	f.send("GET", path+"/x/forks", "").Problem(http.StatusBadRequest, "bad_id", "")
	f.send("GET", at+"/forks?after=x", "").Problem(http.StatusBadRequest, "bad_id", "")
	f.send("POST", path+"/"+one.ID.String()+":fork", "").Problem(http.StatusConflict, "nothing_failed", "realized")
	f.send("POST", at+":fork", `{"from": "mail"}`).Problem(http.StatusConflict, "no_step", "reserve")
	f.send("POST", at+":fork", `{"name": "fix", "from": "start"}`).Problem(http.StatusConflict, "forked_otherwise", "")
	f.send("POST", at+":fork", `{"set": {"sleep": 1}}`).Problem(http.StatusBadRequest, "bad_future", "sleep")
	f.send("POST", at+":fork", `{"form": "start"}`).Problem(http.StatusUnprocessableEntity, "bad_request", "form")
	f.send("POST", path+":fork", `{"name": "fix"}`).Problem(http.StatusBadRequest, "bad_request", "name the futures")
	f.send("POST", path+":fork?state=failed", "").Problem(http.StatusBadRequest, "bad_name", "forks")
	f.send("POST", path+":fork?state=ready", `{"name": "fix"}`).Problem(http.StatusBadRequest, "bad_future", "ready")
	f.send("POST", path+":fork?batch=b", `{"name": "fix"}`).Problem(http.StatusBadRequest, "bad_request", "batch")
	f.send("POST", path+":fork?state=failed&cursor=!", `{"name": "fix"}`).Problem(http.StatusBadRequest, "bad_request", "")
}
