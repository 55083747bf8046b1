package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// damage writes into the store past the model: a future loses the key of where it waits, a counter is
// off, and another future is named that does not exist. Only the last is not known by the records.
func (s *shell) damage(id string, beyond bool) {
	future, err := layout.ParseID(id)
	require.NoError(s.t, err)
	s.past(func(c *futures.Client, tx kv.Tx) {
		row, err := c.Cluster().Get(s.t.Context(), future)
		require.NoError(s.t, err)
		keys := c.Cluster().Keys()
		tx.Clear(keys.Ready(future, row.Spec))
		key := keys.Count(future.Shard(keys.Shards), layout.DefaultQueue, "", layout.Ready)
		tx.Atomic(kv.Add, key, layout.EncodeCounter(7))
		if beyond {
			tx.Set(keys.Alias("lost"), layout.Encode(&layout.AliasRecord{CID: "bafk"}))
		}
	})
}

// past writes into the store past the model.
func (s *shell) past(write func(*futures.Client, kv.Tx)) {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, s.store, kvopen.Options{Exclusive: true})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, db.Close()) }()
	c, err := futures.New(ctx, db, futures.Options{Existing: true})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, c.Close(ctx)) }()
	_, err = kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error { write(c, tx); return nil })
	require.NoError(s.t, err)
}

func TestCheckRepairs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:later", "--args", "x")
	s.damage(id, false)
	before := s.ok("get", id)

	out, e := s.run(exitFailed, "", "check")
	require.Contains(t, out, " 2 problems")
	require.Contains(t, e, "2 can be repaired: futura check --repair")
	out, _ = s.run(exitFailed, "", "check", "--repair", "--dry-run")
	require.Regexp(t, `(?m)^ready +1 +write the key +future \S+ is ready and has no ready key$`, out)
	require.Regexp(t, `(?m)^counts +1 +count again +there are`, out)
	out, _ = s.run(exitFailed, "", "check", "--repair", "--dry-run")
	require.Contains(t, out, " 2 problems", "it changed something")

	out = s.ok("check", "--repair", "--yes")
	require.Contains(t, out, "counts: 1 repaired\nready: 1 repaired\n")
	require.Contains(t, out, " 0 problems")
	require.Equal(t, before, s.ok("get", id))
	require.Contains(t, s.ok("check"), " 0 problems")
	require.NotContains(t, s.ok("check", "--repair", "--yes"), "repaired")
}

func TestCheckNamesWhatItDoesNotRepair(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:later")
	s.damage(id, true)
	out, _ := s.run(exitFailed, "", "check", "--repair", "--yes")
	require.Contains(t, out, "alias: the alias stands for module bafk, which is not stored\n")
	require.Contains(t, out, "not repaired: put the module again: futura function put\n")
	require.Contains(t, out, " 1 problem,")

	var got checked
	out, _ = s.run(exitFailed, "", "check", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Nil(t, got.Repairs)
	require.Equal(t, []audit.Kind{{Invariant: audit.InvariantAlias, Found: 1}}, got.Kinds)
	require.NotEmpty(t, got.Problems[0].Instead)

	s.damage(id, true)
	out, _ = s.run(exitFailed, "", "check", "--json", "--repair", "--yes")
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, map[audit.Invariant]int64{layout.PlaceReady: 1, audit.InvariantCounts: 1}, got.Repairs.Repaired)
	require.EqualValues(t, 1, got.Broken)
}

func TestCheckRepairsNothingUnasked(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("submit", "go:later")
	for args, want := range map[string]string{
		"--repair":                 "--repair asks on a terminal",
		"--repair --json":          "--repair asks on a terminal",
		"--yes":                    "go with --repair",
		"--dry-run":                "go with --repair",
		"--repair --dry-run --yes": "leave out --yes",
	} {
		_, e := s.run(exitUsage, "y\n", append([]string{"check"}, strings.Fields(args)...)...)
		require.Contains(t, e, want, args)
	}
	for answer, want := range map[string]bool{
		"y\n": true, "Yes\n": true, " yes ": true, "\n": false, "": false, "n\n": false, "yellow\n": false,
	} {
		require.Equal(t, want, confirmed(strings.NewReader(answer), io.Discard, "Repair them?"), "%q", answer)
	}
}

// TestPlansFitATerminal requires that lines are up to 80 columns wide where nothing is piped.
func TestPlansFitATerminal(t *testing.T) {
	t.Parallel()
	report := &audit.Report{}
	for _, of := range []audit.Invariant{audit.InvariantException, layout.PlaceAssigned} {
		p := audit.Problem{Invariant: of, Repair: "write the key, clear the key", Text: strings.Repeat("long text ", 20)}
		report.Kinds = append(report.Kinds, audit.Kind{Invariant: of, Repairable: 1_000_000, Repaired: &p})
	}
	for line := range strings.Lines(planText(report, 80)) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
}
