package fdbmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// CLICommand is a command to paste into fdbcli.
type CLICommand struct {
	// Shows says what the command shows.
	Shows   string `json:"shows"`
	Command string `json:"command"`
}

// CLICommands returns the commands that lead, in fdbcli, from a future to its
// records, its place in the index, the worker that holds or held it, and its
// result. They are those for the future as it is now: once it moves on, others
// may show more. It returns ErrNotFound.
func (c *Cluster) CLICommands(ctx context.Context, id ID) ([]CLICommand, error) {
	row, err := c.Get(ctx, id)
	if isUnreadable(err) {
		row, err = Row{ID: id}, nil
	}
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("future %s: %w", id, ErrNotFound)
		}
		return nil, err
	}
	k := c.keys
	commands := []CLICommand{
		get("what the cluster agrees on; field s is the number of shards", k.config()),
		get("what never changes of the future", k.spec(id)),
		getRange("what changes of it: these keys are its state", k.stateRange(id), maxRowKeys),
		get("who holds it, or realized it: w is the worker, s the number of its claim", k.state(id, stateClaim)),
	}
	if row.Spec != nil && row.State() == Ready {
		commands = append(commands, get("where it waits", k.waits(&row)))
	}
	if row.Attempts.Due != 0 {
		commands = append(commands, get("its place among the delayed", k.delayed(id, row.Attempts.Due)))
	}
	commands = append(commands, holderCommands(k, &row)...)
	if row.Exception != nil {
		commands = append(commands, get("its last failure", k.state(id, stateException)))
	}
	commands = append(commands, get("its result: v is the value", k.state(id, stateResult)))
	for _, ref := range row.refs() {
		commands = append(commands, getRangeKeys(fmt.Sprintf("the pieces of its %s, %d bytes in all", ref.Kind, ref.Size),
			kv.Prefix(k.chunks(id, *ref)), ref.Count))
	}
	return commands, nil
}

func holderCommands(k keyspace, row *Row) []CLICommand {
	worker, shows := WorkerID(""), ""
	switch {
	case row.Claim != nil && row.State() == Claimed:
		worker, shows = row.Claim.Worker, "the worker that holds it: alive says what it is"
	case row.Claim != nil:
		worker, shows = row.Claim.Worker, "the worker that realized it, if it is still there"
	case row.Exception != nil && row.Exception.Worker != "":
		worker, shows = row.Exception.Worker, "the worker where it failed last, if it is still there"
	default:
		return nil
	}
	return []CLICommand{getRange(shows, kv.Prefix(k.workerAll(worker)), inspectPage)}
}

func get(shows string, key []byte) CLICommand { return CLICommand{shows, "get " + EscapeKey(key)} }

func getRange(shows string, r kv.Range, limit int) CLICommand {
	return CLICommand{shows, fmt.Sprintf("getrange %s %s %d", EscapeKey(r.Begin), EscapeKey(r.End), limit)}
}

func getRangeKeys(shows string, r kv.Range, limit int) CLICommand {
	return CLICommand{shows, fmt.Sprintf("getrangekeys %s %s %d", EscapeKey(r.Begin), EscapeKey(r.End), limit)}
}
