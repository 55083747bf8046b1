package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// CLICommand is a command to paste into fdbcli.
type CLICommand struct {
	// Shows says what the command shows.
	Shows   string `json:"shows"`
	Command string `json:"command"`
}

// CLICommands returns the commands that lead, in fdbcli, from a future to its
// records, its place in the index, the worker that holds or held it, and its
// result. They are valid for the future's present state: once that changes,
// other commands may show more. It returns ErrNotFound for an unknown future.
func CLICommands(ctx context.Context, c *fdbmodel.Cluster, id layout.ID) ([]CLICommand, error) {
	row, err := c.Get(ctx, id)
	if layout.IsUnreadable(err) {
		row, err = layout.Row{ID: id}, nil
	}
	if err != nil {
		if errors.Is(err, fdbmodel.ErrNotFound) {
			err = fmt.Errorf("future %s: %w", id, fdbmodel.ErrNotFound)
		}
		return nil, err
	}
	k := c.Keys()
	commands := []CLICommand{
		get("the cluster's settings; field s is the number of shards", k.Config()),
		get("the part of the future that never changes", k.Spec(id)),
		getRange("the part that changes: these keys are its state", k.StateRange(id), layout.MaxRowKeys),
		get("its claim: w is the worker, s the number of the claim", k.State(id, layout.StateClaim)),
	}
	if row.Spec != nil {
		if place := layout.PlaceOf(&row); place != nil {
			commands = append(commands, get("where it waits: "+place.Kind, place.Key(k, &row)))
		}
	}
	if row.Spec != nil && row.Spec.IsPromise() {
		commands = append(commands, get("the hash of the token that completes it", promises.Keys(k).Promise(id)))
	} else if row.Blocked != nil {
		commands = append(commands, getRangeKeys("the inputs that it waits for", kv.Prefix(k.InputsOf(id)), inspectPage))
	}
	if row.Dependants {
		commands = append(commands, getRangeKeys("the futures that use its result", kv.Prefix(k.DependantsOf(id)),
			inspectPage))
	}
	commands = append(commands, holderCommands(k, &row)...)
	if row.Exception != nil {
		commands = append(commands, get("its last failure", k.State(id, layout.StateException)))
	}
	commands = append(commands, get("its result: v is the value", k.State(id, layout.StateResult)))
	for _, ref := range row.Refs() {
		commands = append(commands, getRangeKeys(fmt.Sprintf("the pieces of its %s, %d bytes in all", ref.Kind, ref.Size),
			kv.Prefix(k.Chunks(id, *ref)), ref.Count))
	}
	return commands, nil
}

func holderCommands(k layout.Keyspace, row *layout.Row) []CLICommand {
	worker, shows := layout.WorkerID(""), ""
	switch {
	case row.Claim != nil && row.State() == layout.Claimed:
		worker, shows = row.Claim.Worker, "the worker that holds it; alive describes it"
	case row.Claim != nil:
		worker, shows = row.Claim.Worker, "the worker that realized it, if it is still there"
	case row.Exception != nil && row.Exception.Worker != "":
		worker, shows = row.Exception.Worker, "the worker where it failed last, if it is still there"
	default:
		return nil
	}
	return []CLICommand{getRange(shows, kv.Prefix(k.WorkerAll(worker)), inspectPage)}
}

func get(shows string, key []byte) CLICommand {
	return CLICommand{shows, "get " + layout.EscapeKey(key)}
}

func getRange(shows string, r kv.Range, limit int) CLICommand {
	return CLICommand{shows, fmt.Sprintf("getrange %s %s %d", layout.EscapeKey(r.Begin), layout.EscapeKey(r.End), limit)}
}

func getRangeKeys(shows string, r kv.Range, limit int) CLICommand {
	return CLICommand{shows, fmt.Sprintf("getrangekeys %s %s %d", layout.EscapeKey(r.Begin), layout.EscapeKey(r.End),
		limit)}
}
