package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/workers"
)

// failOrders makes orders that fail for good behind a step, but for those that are negative, and returns their ids.
func failOrders(t *testing.T, s *shell, orders ...int) (ids []string) {
	order := futures.Define[int, string]("order")
	node, err := futura.Open(t.Context(), s.store, futura.Function(order.Bind(
		func(ctx context.Context, n int) (string, error) {
			if n < 0 {
				return "", workers.Permanent(errors.New("no such order"))
			}
			_, err := futures.Step(ctx, "reserve", func(context.Context) (int, error) { return n, nil })
			return "", errors.Join(err, workers.Permanent(errors.New("card declined")))
		})))
	require.NoError(t, err)
	for _, n := range orders {
		f, err := order.Submit(t.Context(), node.Client, n)
		require.NoError(t, err)
		_, err = f.Await(t.Context())
		require.ErrorIs(t, err, futures.ErrFailed)
		ids = append(ids, f.ID().String())
	}
	require.NoError(t, node.Close())
	return ids
}

func TestForkFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ids := failOrders(t, s, 1, -1)
	out, e := s.run(exitOK, "", "fork", ids[0])
	made := strings.TrimSpace(out)
	require.Contains(t, e, "after step reserve")
	require.Contains(t, s.ok("get", made), "forked from")
	require.Contains(t, s.ok("get", ids[0]), "futura forks "+ids[0])
	out, e = s.run(exitOK, "", "steps", made)
	require.Regexp(t, `reserve .* copied`, out)
	require.Contains(t, e, "forked from "+ids[0])
	require.Contains(t, s.ok("forks", ids[0]), made)

	var forked futures.Forked
	require.NoError(t, json.Unmarshal([]byte(s.ok("fork", ids[0], "--from", "failed", "--set", "charge={\"id\": 7}",
		"--set", "reserve=2", "--name", "fix", "--json")), &forked))
	require.Equal(t, [2]int{1, 2}, [2]int{forked.Copied, forked.Set})
	require.Regexp(t, `(?s)reserve .* set.*charge .* set`, s.ok("steps", forked.ID.String()))
	_, e = s.run(exitUsage, "", "fork", ids[0], "--name", "fix")
	require.Contains(t, e, "other values")
	_, e = s.run(exitOK, "", "fork", ids[0], "--name", "fix", "--set", "reserve=2", "--set", `charge={"id":7}`)
	require.Contains(t, e, "was made before")
	all := listed[futures.Forked](t, "forks", s.ok("forks", ids[0], "--json"))
	require.Len(t, all, 2)
	_, e = s.run(exitOK, "", "forks", ids[0], "--limit", "1")
	_, after, found := strings.Cut(strings.TrimSpace(e), "--after ")
	require.True(t, found)
	require.Equal(t, 1, strings.Count(s.ok("forks", ids[0], "--after", strings.Trim(after, "'")), "\n"))
	view := httpapi.Future{}
	require.NoError(t, json.Unmarshal([]byte(s.ok("get", made, "--json")), &view))
	require.Equal(t, ids[0], view.Fork.Source.String())

	for _, c := range []struct{ args, want string }{
		{"fork " + ids[1], "recorded no step"}, {"fork " + made, "ready"}, {"fork " + ids[0] + " --from mail", `"reserve"`},
		{"fork " + ids[0] + " --name fix --from start", "another name"}, {"fork " + ids[0] + " --set x", "STEP=JSON"},
		{"fork " + ids[0] + " --set x=y", "STEP=JSON"}, {"fork " + ids[0] + " --set x=1 --set x=2", "two values"},
		{"fork " + ids[0] + " --set sleep=1", "sleep"}, {"fork " + ids[0] + " --yes", "selection"},
		{"fork " + ids[0] + " --limit 1", "selection"}, {"fork " + ids[0] + " " + ids[1], "one ID"}, {"fork", "name futures"},
		{"fork " + ids[0] + " --state failed", "name futures"}, {"fork x", "id"}, {"forks x", "id"},
		{"forks " + ids[0] + " --limit 0", "--limit"}, {"forks " + ids[0] + " --after x", "id"},
		{"fork --state ready", "--state ready"}, {"fork --state failed --limit -1", "--limit"},
	} {
		_, e := s.run(exitUsage, "", strings.Fields(c.args)...)
		require.Contains(t, e, c.want, c.args)
	}
	s.run(exitNotFound, "", "fork", "01995b4e-6f3a-7c1e-9d2b-0123456789ab")
	s.run(exitNotFound, "", "forks", "01995b4e-6f3a-7c1e-9d2b-0123456789ab")
}

func TestForkManyFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ids := failOrders(t, s, 1, 2, 3, -1)
	s.ok("cancel", strings.TrimSpace(s.ok("submit", "go:order", "--args", "1")))
	out, e := s.run(exitOK, "", "fork", "--where", `function=order error~"CARD declined"`)
	require.Contains(t, out, "3 would be forked")
	require.Contains(t, out, ids[0])
	require.Contains(t, e, "this is a preview")
	require.Equal(t, 0, strings.Count(s.ok("list", "--state", "ready", "--json"), `"id"`))

	out, _ = s.run(exitFailed, "", "fork", "--function", "go:order", "--name", "fix", "--yes", "--limit", "2")
	require.Contains(t, out, "2 forked")
	out, e = s.run(exitFailed, "", "fork", "--function", "go:order", "--name", "fix", "--yes")
	require.Contains(t, out, "1 forked and 2 were before")
	require.Contains(t, e, "not forked: there is no step that failed")
	require.Contains(t, e, "left alone, as cancelled: 1")
	require.Equal(t, 3, strings.Count(s.ok("list", "--label", "fix"), "\n"))
	done := forkedMany{}
	out = s.ok("fork", "--error", "declined", "--name", "fix", "--yes", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &done))
	require.Equal(t, [3]int{3, 0, 3}, [3]int{done.Matched, done.Forked, done.Existed})
	require.False(t, done.Preview)
	out, e = s.run(exitOK, "", "fork", "--where", "error~declined", "--from", "start", "--yes")
	require.Contains(t, out, "3 forked")
	require.Contains(t, e, "name: fork-")
	require.Contains(t, s.ok("fork", "--where", "state=realized", "--from", "start"), "0 would be forked")

	for where, want := range map[string]string{
		"": "it is empty", " ": "empty", "x": "NAME=VALUE", "x=1": "use state", "=1": "NAME=VALUE", "error=x": "error~TEXT",
		"tag~x": "error~TEXT", "tag=": "no value", "tag=a tag=b": "twice", `error~"a`: "not closed", "since=x": "since",
		"state=ready": "--state ready", "function=a/b": "function", "label=x": "use state",
	} {
		_, e := s.run(exitUsage, "", "fork", "--where", where)
		require.Contains(t, e, want, where)
	}
}

func TestTermsOfWhere(t *testing.T) {
	t.Parallel()
	terms, err := splitTerms(`  function=charge  error~"no such card" tag="" `)
	require.NoError(t, err)
	require.Equal(t, []string{"function=charge", "error~no such card", "tag="}, terms)
}
