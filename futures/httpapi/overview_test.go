package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/faultdisk"
)

// TestOverview has what a cluster does, and leads to more.
func TestOverview(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	before := time.Now().Add(-time.Second)
	f.send("PUT", "/api/v1/lanes/mail", `{"width":1}`).Into(http.StatusOK, &map[string]any{})
	for i := range 4 {
		f.send("POST", path, fmt.Sprintf(`{"function":"go:nowhere","queue":"q%d","tags":["customer:%d"],
			"lane":{"kind":"mail","key":"a/%d"}}`, i%2, i%3, i)).Into(http.StatusCreated, &map[string]any{})
	}
	f.send("PUT", "/api/v1/pauses/queue/q0", `{"reason":"the provider is down"}`)
	var o httpapi.Overview
	f.send("GET", "/api/v1/overview", "").Into(http.StatusOK, &o)
	require.EqualValues(t, 4, o.Total.Ready)
	require.Len(t, o.Queues, 2)
	for _, q := range o.Queues {
		require.EqualValues(t, 2, q.Ready)
		require.NotNil(t, q.OldestReady)
		require.WithinRange(t, *q.OldestReady, before, time.Now())
		require.False(t, q.OldestReady.Before(*o.Total.OldestReady))
	}
	require.Equal(t, "4 waiting futures, and no worker is alive", o.Wrong[0].Text)
	require.Contains(t, o.Wrong[1].Text, "the queue q0 was paused ")
	for _, wrong := range o.Wrong {
		f.send("GET", wrong.See, "").Into(http.StatusOK, &map[string]any{})
	}
	require.NotContains(t, string(f.send("GET", "/api/v1/overview", "").Body), "heartbeat", "workers are counted alone")

	for by, want := range map[string]map[string]int{
		"tag": {"customer:0": 2, "customer:1": 1, "customer:2": 1}, "queue": {"q0": 2, "q1": 2}, "state": {"ready": 4},
		"lane": {"mail/a/0": 1, "mail/a/1": 1, "mail/a/2": 1, "mail/a/3": 1}, "worker": {"": 4}, "batch": {"": 4},
		"function": {"go:nowhere": 4},
	} {
		var found httpapi.Breakdown
		f.send("GET", path+":count?state=ready&by="+by, "").Into(http.StatusOK, &found)
		groups := map[string]int{}
		for _, g := range found.Groups {
			groups[g.Value] = g.Futures
		}
		require.Equal(t, want, groups, by)
		require.True(t, found.Complete)
	}
	var list struct{ Futures []httpapi.Future }
	f.send("GET", path+"?lane="+url.QueryEscape("mail/a/3"), "").Into(http.StatusOK, &list)
	require.Len(t, list.Futures, 1)
	f.send("GET", path+"?worker=none", "").Into(http.StatusOK, &list)
	require.Empty(t, list.Futures)
	f.send("GET", path+"?lane=mail", "").Problem(http.StatusBadRequest, "bad_name", "KIND/KEY")
	f.send("GET", path+":count?by=colour", "").Problem(http.StatusUnprocessableEntity, "bad_request", "by")
	f.send("GET", path+":count", "").Problem(http.StatusUnprocessableEntity, "bad_request", "by")
	var b httpapi.Bulk
	f.send("POST", path+":cancel?lane="+url.QueryEscape("mail/a/3"), "").Into(http.StatusOK, &b)
	require.Equal(t, httpapi.Bulk{Matched: 1, Changed: 1}, b)
}

// TestOverviewOfAFullDisk has a store that can't be written, and then one that can.
func TestOverviewOfAFullDisk(t *testing.T) {
	t.Parallel()
	disk := faultdisk.New()
	open := func() kv.Database {
		db, err := embedded.Open(t.Context(), "store", embedded.Options{FS: disk})
		require.NoError(t, err)
		return db
	}
	f := newFixtureOn(t, open(), httpapi.Options{})
	require.NoError(t, f.client.Close(context.Background()))
	require.NoError(t, f.db.Close())
	disk.Space = 0
	db := open()
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	f = newFixtureOn(t, db, httpapi.Options{})
	wrong := func() []httpapi.Trouble {
		var o httpapi.Overview
		f.send("GET", "/api/v1/overview", "").Into(http.StatusOK, &o)
		return o.Wrong
	}
	f.send("POST", path, `{"function":"go:nowhere"}`).Problem(http.StatusServiceUnavailable, "store_read_only", "free")
	all := wrong()
	require.Len(t, all, 1)
	require.Equal(t, httpapi.Bad, all[0].Severity)
	require.Regexp(t, "^the store can't be written: store: .*no space left on device: free some space", all[0].Text)
	f.send("GET", all[0].See, "").Into(http.StatusOK, &map[string]any{})

	disk.SetSpace(-1)
	f.send("POST", path, `{"function":"go:nowhere","delay_ms":3600000}`).Into(http.StatusCreated, &map[string]any{})
	require.Empty(t, wrong())
}

// TestOverviewOfWhatCantBeRead has a kind of lanes, a lane and a pause damaged: the others are shown, and the overview
// says so.
func TestOverviewOfWhatCantBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, httpapi.Options{})
	for _, kind := range []string{"bad", "mail"} {
		f.send("PUT", "/api/v1/lanes/"+kind, `{"width":1}`).Into(http.StatusOK, &map[string]any{})
	}
	for _, key := range []string{"a", "b", "c"} {
		f.send("POST", path, fmt.Sprintf(`{"function":"go:nowhere","lane":{"kind":"mail","key":%q}}`, key)).
			Into(http.StatusCreated, &map[string]any{})
	}
	f.send("PUT", "/api/v1/pauses/queue/q0", `{}`).Into(http.StatusOK, &map[string]any{})
	k := f.client.Cluster().Keys()
	pause := kv.Prefix(tuple.AppendString(k.Bulletin(), "paused"))
	_, err := f.client.Cluster().Transact(t.Context(), kv.Options{}, func(tx kv.Attempt) error {
		page, err := tx.GetRange(pause, kv.RangeOptions{}).Wait(t.Context())
		require.Len(t, page.Items, 1)
		for _, key := range [][]byte{k.LaneKind("bad"), k.Lane(layout.Lane{Kind: "mail", Key: "b"}), page.Items[0].Key} {
			tx.Set(key, []byte{layout.RecordVersion, 0xc1})
		}
		return err
	})
	require.NoError(t, err)
	var o httpapi.Overview
	f.send("GET", "/api/v1/overview", "").Into(http.StatusOK, &o)
	require.EqualValues(t, 3, o.Total.Ready)
	require.Contains(t, o.Wrong[1].Text, "a kind of lanes can't be read: ")
	require.Contains(t, o.Wrong[2].Text, "the queue q0 is paused: ")
	var kinds struct{ Kinds []httpapi.LaneKind }
	f.send("GET", "/api/v1/lanes", "").Into(http.StatusOK, &kinds)
	require.Len(t, kinds.Kinds, 1)
	var listed []string
	for after, more := "", true; more; {
		var page struct{ Lanes []httpapi.LaneView }
		f.send("GET", "/api/v1/lanes/mail/keys?limit=1&after="+after, "").Into(http.StatusOK, &page)
		if more = len(page.Lanes) == 1; more {
			after = page.Lanes[0].Key
			listed = append(listed, after)
		}
	}
	require.ElementsMatch(t, []string{"a", "c"}, listed)
}
