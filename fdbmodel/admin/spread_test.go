package admin_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

// placed is a store that says where its keys lie.
type placed struct {
	kv.Database
	teams   [][]string
	servers int
	err     error
}

// Locate implements kv.Located.
func (p *placed) Locate(_ context.Context, keys [][]byte) (kv.Location, error) {
	location := kv.Location{Servers: p.servers}
	for i := range keys {
		location.Teams = append(location.Teams, p.teams[i%len(p.teams)])
	}
	return location, p.err
}

func TestSpread(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	open := func(p *placed) *fdbmodel.Cluster {
		p.Database = db
		c, err := fdbmodel.Open(ctx, p, "spread", fdbmodel.Options{Config: layout.Config{Shards: 4}})
		require.NoError(t, err)
		return c
	}
	a, b := []string{"10.0.0.1:4500", "10.0.0.2:4500"}, []string{"10.0.0.2:4500", "10.0.0.3:4500"}
	spread, err := admin.SpreadOf(ctx, open(&placed{teams: [][]string{a}, servers: 3}))
	require.NoError(t, err)
	require.Equal(t, 1, spread.Teams)
	require.Contains(t, spread.Warning, "all 4 shards are on the same 2 of 3 servers (10.0.0.1:4500, 10.0.0.2:4500)")

	spread, err = admin.SpreadOf(ctx, open(&placed{teams: [][]string{a}, servers: 2}))
	require.NoError(t, err)
	require.Equal(t, admin.Spread{Shards: 4, Teams: 1, Servers: 2}, spread)

	spread, err = admin.SpreadOf(ctx, open(&placed{teams: [][]string{a, b}, servers: 3}))
	require.NoError(t, err)
	require.Equal(t, admin.Spread{Shards: 4, Teams: 2, Servers: 3}, spread)

	broken := errors.New("broken")
	_, err = admin.SpreadOf(ctx, open(&placed{teams: [][]string{a}, err: broken}))
	require.ErrorIs(t, err, broken)

	c, err := fdbmodel.Open(ctx, struct{ kv.Database }{db}, "spread", fdbmodel.Options{})
	require.NoError(t, err)
	spread, err = admin.SpreadOf(ctx, c)
	require.NoError(t, err)
	require.Equal(t, admin.Spread{Shards: 4}, spread)
}
