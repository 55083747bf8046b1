//go:build fdb

package fdbkv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Locate implements kv.Located.
func (d *Database) Locate(ctx context.Context, keys [][]byte) (kv.Location, error) {
	begun := d.Begin(kv.Options{})
	defer begun.Cancel()
	t, ok := begun.(*tx)
	if !ok {
		return kv.Location{}, errors.ErrUnsupported
	}
	if err := t.usable(); err != nil {
		return kv.Location{}, err
	}
	pending := make([]fdb.FutureStringSlice, len(keys))
	for i, key := range keys {
		if err := kv.CheckLegal(key); err != nil {
			return kv.Location{}, err
		}
		pending[i] = t.native.LocalityGetAddressesForKey(fdb.Key(key))
	}
	status := t.native.Get(fdb.Key("\xff\xff/status/json"))
	location := kv.Location{Teams: make([][]string, len(keys))}
	for i := range pending {
		team, err := wait(ctx, t, pending[i].Get)
		if err != nil {
			return kv.Location{}, err
		}
		slices.Sort(team)
		location.Teams[i] = team
	}
	document, err := wait(ctx, t, status.Get)
	if err != nil {
		return kv.Location{}, err
	}
	location.Servers, err = storageServers(document)
	return location, err
}

// storageServers counts the processes with the role of storage in a cluster's
// status.
func storageServers(document []byte) (int, error) {
	var status struct {
		Cluster struct {
			Processes map[string]struct {
				Roles []struct {
					Role string `json:"role"`
				} `json:"roles"`
			} `json:"processes"`
		} `json:"cluster"`
	}
	if err := json.Unmarshal(document, &status); err != nil {
		return 0, fmt.Errorf("fdbkv: status of the cluster: %w", err)
	}
	servers := 0
	for _, process := range status.Cluster.Processes {
		for _, r := range process.Roles {
			if r.Role == "storage" {
				servers++
			}
		}
	}
	return servers, nil
}
