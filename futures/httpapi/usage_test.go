package httpapi_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/metering"
	"github.com/futura-run/futura/futures/httpapi"
)

// TestUsageOverHTTP reads what was used by day and by worker.
func TestUsageOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	c := f.client.Cluster()
	put := func(day, kind, name string, items int64) {
		key := metering.Keys(c.Keys()).Metered(metering.Key{Day: day, Kind: kind, Name: name, Membership: "w"})
		_, err := kv.Transact(context.Background(), c.Database(), kv.Retry{}, func(tx kv.Attempt) error {
			tx.Set(key, layout.Encode(&metering.Metered{Items: items, RunTime: time.Second, In: 2, Memory: items}))
			return nil
		})
		require.NoError(t, err)
	}
	put("2026-01-31", metering.Peer, "a", 1)
	put("2026-01-31", metering.Worker, "a", 2)
	put("2026-02-01", metering.Worker, "a", 4)
	put("2026-02-03", metering.Worker, "a", 8)
	const usage = "/api/v1/usage?from=2026-01-31&to=2026-02-02"
	used := func(items, attempts int64, most int64) httpapi.Used {
		return httpapi.Used{Items: items, RunMS: attempts * 1000, BytesIn: 2 * attempts, MemoryMax: most}
	}
	var view httpapi.UsageView
	f.send("GET", usage, "").Into(http.StatusOK, &view)
	require.Equal(t, httpapi.UsageView{
		From: "2026-01-31", To: "2026-02-02", By: "day", Total: used(7, 3, 4), Rows: []httpapi.UsageRow{
			{Day: "2026-01-31", Used: used(3, 2, 2)}, {Day: "2026-02-01", Used: used(4, 1, 4)},
		}}, view)
	view = httpapi.UsageView{}
	f.send("GET", usage+"&by=worker", "").Into(http.StatusOK, &view)
	require.Equal(t, []httpapi.UsageRow{
		{Kind: "peer", Worker: "a", Used: used(1, 1, 1)}, {Kind: "worker", Worker: "a", Used: used(6, 2, 4)},
	}, view.Rows)
	f.send("GET", "/api/v1/usage", "").Into(http.StatusOK, &view)
	require.Equal(t, layout.Day(time.Now().UTC()), view.To)
	for _, wrong := range []string{"from=x", "to=2026-02-30", "from=2026-02-02&to=2026-02-01",
		"from=2020-01-01&to=2026-01-01"} {
		f.send("GET", "/api/v1/usage?"+wrong, "").Problem(http.StatusBadRequest, "bad_request", "")
	}
	require.Equal(t, http.StatusUnprocessableEntity, f.send("GET", "/api/v1/usage?by=hour", "").Status)
}
