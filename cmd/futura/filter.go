package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// filterFlags say which futures a command takes.
type filterFlags struct {
	filter                            inspect.Filter
	state, lane, worker, since, until string
}

// add adds the flags. which begins their help, such as "only those"; states are those that may
// be asked for, none of them if there is one alone.
func (f *filterFlags) add(flags *pflag.FlagSet, which string, states []layout.State) {
	if len(states) > 1 {
		onceVar(flags, &f.state, "state", which+" that are "+layout.AnyOf(states))
	}
	onceVar(flags, &f.filter.Queue, "queue", which+" of this queue")
	onceVar(flags, &f.filter.Function, "function", which+" of this function")
	onceVar(flags, &f.filter.Tag, "tag", which+" with this tag")
	onceVar(flags, &f.filter.Error, "error",
		which+" whose last failure has this in its message, or is of this kind, such as timeout")
	onceVar(flags, &f.lane, "lane", which+" of this lane, as KIND/KEY")
	onceVar(flags, &f.worker, "worker", which+" that this worker has, or had an attempt at: its id")
	onceVar(flags, &f.since, "since", which+" submitted since a time, such as 2026-01-31T00:00:00Z, or 24h ago")
	onceVar(flags, &f.until, "until", which+" submitted before a time, or so long ago")
}

// once is a filter, which has one value. An empty one would select what has any: in a script it is a variable that is
// not set, and no future may be cancelled or removed for that.
type once struct {
	to  *string
	set bool
}

// onceVar adds a flag that is given at most once: the last of several would count, and the others be
// dropped unseen.
func onceVar(flags *pflag.FlagSet, to *string, name, usage string) {
	flags.Var(&once{to: to}, name, usage)
}

// Set implements pflag.Value.
func (o *once) Set(text string) error {
	switch {
	case o.set:
		return errors.New("it is given twice and takes one value: run the command for each")
	case text == "":
		return errors.New("it is empty: leave it out, or give it a value")
	}
	*o.to, o.set = text, true
	return nil
}

// String implements pflag.Value.
func (o *once) String() string {
	if o.to == nil {
		return ""
	}
	return *o.to
}

// Type implements pflag.Value.
func (o *once) Type() string { return "string" }

// some reports whether a flag was given.
func (f *filterFlags) some() bool {
	return f.filter != (inspect.Filter{}) || f.state+f.lane+f.worker+f.since+f.until != ""
}

// parse reads the flags, of which the state is one of states.
func (f *filterFlags) parse(states []layout.State) (err error) {
	if f.state != "" {
		if f.filter.State, err = layout.ParseState(f.state); err != nil {
			return err
		}
		if !slices.Contains(states, f.filter.State) {
			return usageError{fmt.Errorf("--state %s: use %s", f.state, layout.AnyOf(states))}
		}
	}
	if f.lane != "" {
		if f.filter.Lane, err = parseLane(f.lane); err != nil {
			return err
		}
	}
	f.filter.Worker = layout.WorkerID(strings.ToLower(f.worker))
	return errors.Join(agoFlag("since", f.since, &f.filter.Since), agoFlag("until", f.until, &f.filter.Until))
}

// parseLane reads --lane.
func parseLane(text string) (layout.Lane, error) {
	lane, err := layout.ParseLane(text)
	if err != nil {
		return lane, usageError{fmt.Errorf("--lane: %w", err)}
	}
	return lane, nil
}

// agoFlag reads a time, or how long ago it was.
func agoFlag(name, text string, to *time.Time) error {
	if text == "" {
		return nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		*to = time.Now().Add(-ago)
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return usageError{fmt.Errorf("--%s %.40q: use a time such as 2026-01-31T00:00:00Z, or how long ago, such as 24h",
			name, text)}
	}
	*to = at
	return nil
}
