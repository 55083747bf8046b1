package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Spread says on how many servers the shards of a cluster lie.
type Spread struct {
	// Shards of the cluster, and the teams of servers that hold them.
	Shards int `json:"shards"`
	Teams  int `json:"teams"`
	// Servers is how many servers the store has for keys. It is 0 for a store
	// that does not spread its keys.
	Servers int `json:"servers"`
	// Warning says what to do if all shards lie on one team although there are
	// more servers than it has. Empty otherwise.
	Warning string `json:"warning,omitempty"`
}

// SpreadOf returns where the hot keys of each shard lie. All the load of a shard
// goes to one team of servers, and a cluster whose shards share a team is as
// fast as that team, however many servers there are.
func SpreadOf(ctx context.Context, c *fdbmodel.Cluster) (Spread, error) {
	spread := Spread{Shards: c.Config().Shards}
	located, ok := c.Database().(kv.Located)
	if !ok {
		return spread, nil
	}
	hot := make([][]byte, c.Config().Shards)
	for shard := range hot {
		hot[shard] = c.Keys().ReadyQueue(shard, layout.DefaultQueue)
	}
	location, err := located.Locate(ctx, hot)
	if err != nil {
		return spread, fmt.Errorf("locate the shards of cluster %q: %w", c.Name(), err)
	}
	teams := map[string]bool{}
	for _, team := range location.Teams {
		teams[strings.Join(team, ", ")] = true
	}
	spread.Teams, spread.Servers = len(teams), location.Servers
	if team := location.Teams[0]; len(teams) == 1 && len(team) < location.Servers && len(hot) > 1 {
		spread.Warning = fmt.Sprintf("all %d shards are on the same %d of %d servers (%s), which limit the cluster's rate: "+
			"give the shards different teams with fdbcli's rangeconfig", len(hot), len(team), location.Servers,
			strings.Join(team, ", "))
	}
	return spread, nil
}
