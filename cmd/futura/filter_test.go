package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSelectionsAreTakenAsAWhole has filters that are given twice, beside ids, or by a bad id.
func TestSelectionsAreTakenAsAWhole(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:nobody", "--tag", "aa")
	for says, calls := range map[string][]string{
		"it is given twice": {
			"cancel --tag bb --tag aa", "cancel --tag aa --state ready --state delayed", "delete --queue a --queue b",
			"retry --failed --function go:a --function go:b", "list --label a --label b", "promise list --tag a --tag b",
		},
		"it is empty": {
			"cancel --state ready --tag=", "delete --state realized --function=", "retry --failed --queue=",
			"fork --where= --state failed", "list --label=", "promise list --tag=",
		},
		"exclude each other": {"cancel " + id + " --state ready", "fork " + id + " --where tag=aa"},
		"2562047h":           {"submit go:f --delay 99999999h"},
		"pending=-1":         {"limits set --pending -1"},
	} {
		for _, call := range calls {
			_, e := s.run(exitUsage, "", strings.Fields(call)...)
			require.Contains(t, e, says, call)
		}
	}
	require.Contains(t, s.ok("get", id), "ready")
	out, e := s.run(exitUsage, "", "cancel", "bad", id)
	require.Contains(t, out, "cancelled")
	require.Contains(t, e, `"bad" is not of the form`)
	_, e = s.run(exitUsage, "", "cancel", "bad", "worse")
	require.Contains(t, e, "worse")
}

// TestRetryOfManyLeavesPromisesAlone: who rejected one did so for good.
func TestRetryOfManyLeavesPromisesAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id, _, _ := strings.Cut(s.ok("promise", "new"), "\n")
	s.ok("promise", "reject", id, "no")
	out, e := s.run(exitOK, "", "retry", "--failed")
	require.Equal(t, "0 retried\n", out)
	require.Contains(t, e, "left alone, as promises: 1")
	require.Contains(t, s.ok("get", id), "failed")
}
