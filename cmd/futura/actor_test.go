package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// basket is the state of an actor, with a large Note if its key begins with large.
type basket struct {
	Items int
	Note  string `msgpack:",omitempty"`
}

// baskets makes actors of the keys in the store of a shell, through a worker that has left when it returns.
func (s *shell) baskets(keys ...string) {
	a := &app{store: s.store, cluster: futures.DefaultCluster, err: s.t.Output(), out: s.t.Output()}
	require.NoError(s.t, a.openOrMake(s.t.Context(), func(c *futures.Client) error {
		w, err := workers.New(c, workers.Options{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(s.t, err)
		of := futures.DefineActor[basket]("basket")
		add := futures.DefineMethod(of, "add", func(_ context.Context, b *basket, n int) (int, error) {
			b.Items += n
			return b.Items, nil
		})
		items := futures.DefineParts[string](of, "item")
		fill := futures.Define[[]string, int]("fill")
		require.NoError(s.t, w.Register(add.Bind()))
		require.NoError(s.t, w.Register(fill.Bind(func(ctx context.Context, keys []string) (int, error) {
			for i, key := range keys {
				b, err := of.State(ctx, key)
				if err != nil {
					return 0, err
				}
				b.Items = i + 1
				if strings.HasPrefix(key, "large") {
					b.Note = strings.Repeat("x", 60_000)
				}
				if key != "a/b c" {
					continue
				}
				for _, name := range []string{"x", "y"} {
					if err := items.Set(ctx, key, name, name); err != nil {
						return 0, err
					}
				}
			}
			return len(keys), nil
		})))
		stop := storetest.Background(s.t, w.Run)
		defer stop()
		for len(keys) > 0 {
			n := min(len(keys), futures.MaxTurnActors)
			if _, err := fill.Call(s.t.Context(), c, keys[:n]); err != nil {
				return err
			}
			keys = keys[n:]
		}
		_, err = add.Call(s.t.Context(), c, "a", 0) // behind the calls to it that wait
		return err
	}))
}

func TestActorsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.baskets("a", "a/b c", "..")
	require.Regexp(t, `^TYPE\nbasket$`, s.ok("actor", "list"))
	require.Equal(t, []string{"basket"}, listed[string](t, "types", s.ok("actor", "list", "--json")))
	require.Regexp(t, `(?m)^a/b c +1 +\d+ +0 +20`, s.ok("actor", "list", "basket"))
	require.Len(t, listed[futures.ActorView](t, "actors", s.ok("actor", "list", "basket", "--json")), 3)
	out, e := s.run(exitOK, "", "actor", "list", "basket", "--limit", "2")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 3)
	after := strings.Trim(strings.TrimSpace(strings.TrimPrefix(e, "more: --after ")), "'")
	require.Len(t, listed[futures.ActorView](t, "actors", s.ok("actor", "list", "basket", "--json", "--after", after)), 1)
	require.Regexp(t, `(?s)^actor +basket/a/b c\nversion +1\n.*parts +it has some.*state +{\n +"Items": 2\n +}$`,
		s.ok("actor", "show", "basket/a/b c"))
	require.Regexp(t, `(?s)^NAME +SIZE +SCHEMA +NOTE\nitem/x +2 +0.*item/y`, s.ok("actor", "parts", "basket/a/b c"))
	rest := s.ok("actor", "parts", "basket/a/b c", "--json", "--after", "item/x")
	require.Len(t, listed[futures.PartView](t, "parts", rest), 1)
	require.Contains(t, s.ok("actor", "export", "basket"), `{"key":"a/b c","part":"item/x","value":"x"}`)
	var one httpapi.Actor
	require.NoError(t, json.Unmarshal([]byte(s.ok("actor", "show", "basket/a", "--json")), &one))
	require.JSONEq(t, `{"Items": 1}`, string(one.State))

	// No worker runs: calls are taken and wait.
	first := s.ok("actor", "call", "basket/a", "add", "1")
	out, _ = s.run(exitOK, "-1", "actor", "call", "basket/a", "add", "-", "--key", "k")
	second := strings.TrimSpace(out)
	out, e = s.run(exitOK, "-1", "actor", "call", "basket/a", "add", "-", "--key", "k")
	require.Equal(t, second, strings.TrimSpace(out))
	require.Contains(t, e, "is this one")
	var view httpapi.Future
	require.NoError(t, json.Unmarshal([]byte(s.ok("get", first, "--json")), &view))
	require.Equal(t, futures.DefaultMaxRetries, view.MaxRetries)
	once := s.ok("actor", "call", "basket/other", "add", "1", "--retries", "0", "--tag", "t", "--queue", "q")
	require.NoError(t, json.Unmarshal([]byte(s.ok("get", once, "--json")), &view))
	require.Zero(t, view.MaxRetries)
	require.Equal(t, []string{"t"}, view.Tags)
	require.Equal(t, "q", view.Queue)
	require.Contains(t, s.ok("explain", second), "It waits for its turn on actor basket/a: no call is before it in line, "+
		"and call "+first+" (basket.add) has its turn and waits for a worker")
	require.Regexp(t, `(?m)^waiting +1 call$`, s.ok("actor", "show", "basket/a"))
	s.run(exitTimeout, "", "actor", "call", "basket/a", "add", "1", "--wait", "--wait-timeout", "1ms")
	s.baskets("other")
	require.Equal(t, `{"Items":2}`, s.stateOf("basket/a"))

	require.Equal(t, "deleted basket/a/b c", s.ok("actor", "delete", "basket/a/b c"))
	_, e = s.run(exitNotFound, "", "actor", "show", "basket/a/b c")
	require.Contains(t, e, "it has no state")
	s.run(exitNotFound, "", "actor", "delete", "basket/a/b c")
}

// TestReadersFromTheCommandLine calls a reader while a call of its actor runs.
func TestReadersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	of := futures.DefineActor[basket]("basket")
	has := futures.DefineReader(of, "has", func(_ context.Context, b basket, n int) (bool, error) {
		return b.Items >= n, nil
	})
	begun, end := make(chan struct{}), make(chan struct{})
	hold := futures.DefineMethod(of, "hold", func(_ context.Context, b *basket, n int) (int, error) {
		close(begun)
		<-end
		b.Items += n
		return b.Items, nil
	})
	node, err := futura.Open(t.Context(), s.store, futura.Function(has.Bind()), futura.Function(hold.Bind()))
	require.NoError(t, err)
	defer node.Close()
	f, err := hold.Submit(t.Context(), node.Client, "a", 2)
	require.NoError(t, err)
	<-begun
	require.Equal(t, "false", s.ok("actor", "call", "basket/a", "has", "1", "--wait"))
	close(end)
	_, err = f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "true", s.ok("actor", "call", "basket/a", "has", "1", "--wait"))
}

// stateOf is the state of an actor as it is exported.
func (s *shell) stateOf(actor string) string {
	name, key, _ := strings.Cut(actor, "/")
	for line := range strings.Lines(s.ok("actor", "export", name)) {
		var one exportedActor
		require.NoError(s.t, json.Unmarshal([]byte(line), &one))
		if one.Key == key {
			return string(one.State)
		}
	}
	return ""
}

func TestAnExportHasAllActors(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	keys := make([]string, 2*exportPage+7)
	for i := range keys {
		keys[i] = fmt.Sprint("k<", i)
	}
	s.baskets(keys...)
	for range 2 { // together more than a page of states has
		var large []string
		for range 12 {
			large = append(large, fmt.Sprint("large ", len(keys)+len(large)))
		}
		s.baskets(large...)
		keys = append(keys, large...)
	}
	seen, out := map[string]bool{}, s.ok("actor", "export", "basket")
	require.Contains(t, out, `{"key":"k<0",`)
	for line := range strings.Lines(out) {
		var one exportedActor
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		require.False(t, seen[one.Key])
		seen[one.Key] = true
	}
	require.Len(t, seen, len(keys))
	require.Empty(t, s.ok("actor", "export", "none"))
}

// TestAnExportNamesWhatIsDamaged prints all that can be read, and fails.
func TestAnExportNamesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.baskets("a", "a/b c", "b")
	s.past(func(c *futures.Client, tx kv.Tx) {
		keys := actors.Keys(c.Cluster().Keys())
		tx.Set(keys.Head(actors.Ref{Type: "basket", Key: "b"}), []byte{1})
		tx.Set(keys.Part(actors.Ref{Type: "basket", Key: "a/b c"}, "item/x"), []byte{1})
	})
	out, e := s.run(exitFailed, "", "actor", "export", "basket")
	require.Equal(t, 3, strings.Count(out, "\n"), out)
	require.Contains(t, out, `"part":"item/y"`)
	require.Contains(t, e, "2 records of actors of type basket can't be read")
	require.Regexp(t, `(?m)^b +\S`, s.ok("actor", "list", "basket"))
	require.Regexp(t, `(?m)^item/x .*\S$`, s.ok("actor", "parts", "basket/a/b c"))
}

func TestActorCallsThatAreWrong(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("submit", "go:f")
	for says, args := range map[string][]string{
		"is not JSON":       {"call", "basket/a", "add", "yes"},
		"use TYPE/KEY":      {"show", "basket"},
		"a key of 0 bytes":  {"delete", "basket/"},
		"type of actors":    {"list", "a b"},
		"--limit 0":         {"list", "basket", "--limit", "0"},
		"--limit 101":       {"parts", "basket/a", "--limit", "101"},
		"--after needs":     {"list", "--after", "k"},
		"--key is empty":    {"call", "basket/a", "add", "1", "--key", ""},
		"accepts between 2": {"call", "basket/a"},
		"put -- before":     {"call", "basket/a", "add", "-1"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"actor"}, args...)...)
		require.Contains(t, e, says, args)
	}
	_, e := s.run(exitNotFound, "", "actor", "call", "basket/a", "add", "1")
	require.Contains(t, e, "no worker knows go:basket.add")
}
