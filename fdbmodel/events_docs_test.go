package fdbmodel

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/internal/storetest"
)

const eventsPage = "../docs/reference/events.md"

const eventsHead = `# Events

What changes a future, and where: each event of the [state machine](state_machine.md), the functions that apply it,
the keys beside the future's own that its change may write, and tests that are about it. ` + "`make generate`" + `
writes this page: functions and tests are read from the sources, keys from the write set, which gets every change that
the table of states allows, of plain futures and of those with a lane, an owner, inputs, a unique name, an object or a
client that waits. The package of a function is its directory; keys are those of [keyspace.md](keyspace.md).

All events are in the state grid (` + "`TestStateGrid`" + `), in the machine test (` + "`TestMachine`" + `) and in the
simulation (` + "`TestSim`" + ` of ` + "`internal/sim`" + `).

| event | function | keys that follow | tests |
| --- | --- | --- | --- |
`

// TestDocsEvents compares the page with the code.
func TestDocsEvents(t *testing.T) {
	t.Parallel()
	sources := readSources(t)
	var b strings.Builder
	b.WriteString(eventsHead)
	for _, kind := range state.Events() {
		functions := sources.functions["Event"+eventIdent(kind)]
		require.NotEmpty(t, functions, "nothing applies the event %v", kind)
		fmt.Fprintf(&b, "| %v | %s | %s | %s |\n", kind, strings.Join(functions, "<br>"),
			strings.Join(keysOf(t, kind), ", "), strings.Join(sources.testsOf(kind), "<br>"))
	}
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(eventsPage, []byte(b.String()), 0o644))
	}
	page, err := os.ReadFile(eventsPage)
	require.NoError(t, err)
	require.True(t, b.String() == string(page), "%s is stale: run make generate", eventsPage)
}

// eventIdent is how the constant of an event ends.
func eventIdent(k EventKind) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(k.String()) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// sources are what the Go files of the model say of events.
type sources struct {
	functions map[string][]string // by the constant of the event
	tests     []string            // names with their packages
}

// testsOf returns tests that are named after an event, few of many.
func (s *sources) testsOf(k EventKind) []string {
	const most = 4
	stem := strings.TrimSuffix(eventIdent(k), "e")
	var found []string
	for _, name := range s.tests {
		if strings.Contains(name, stem) && len(found) < most {
			found = append(found, name)
		}
	}
	return found
}

func readSources(t *testing.T) *sources {
	s := &sources{functions: map[string][]string{}}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (path == "kv" || path == "state") {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil,
			parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				s.add(path, fn)
			}
		}
		return nil
	}))
	return s
}

func (s *sources) add(path string, fn *ast.FuncDecl) {
	where := filepath.ToSlash(filepath.Join("fdbmodel", path))
	if strings.HasSuffix(path, "_test.go") {
		if fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
			s.tests = append(s.tests, fmt.Sprintf("`%s` %s", fn.Name.Name, filepath.Dir(where)))
		}
		return
	}
	if fn.Body == nil || strings.HasPrefix(path, "modeltest/") {
		return
	}
	applied := map[string]bool{}
	for word := range strings.FieldsFuncSeq(fn.Doc.Text(), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if strings.HasPrefix(word, "Event") && word != "Event" { // it writes what the event would
			applied[word] = true
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
			return false // it asks for the event
		}
		if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(id.Name, "Event") && id.Name != "Event" {
			applied[id.Name] = true
		}
		return true
	})
	for name := range applied {
		s.functions[name] = append(s.functions[name], fmt.Sprintf("`%s` %s", fn.Name.Name, where))
	}
}

// keysOf returns the kinds of keys, beside the records of the future, that changes by an
// event write.
func keysOf(t *testing.T, kind EventKind) []string {
	db, kinds := storetest.New(t), map[string]bool{}
	for _, before := range sampleRows() {
		for _, e := range sampleEvents(kind) {
			after, outcome := Next(before, e)
			if outcome != Applied && outcome != Requested {
				continue
			}
			keys := layout.NewKeyspace("c")
			keys.Shards = 1
			tx := &kindsTx{Tx: db.Begin(kv.Options{}), kinds: kinds}
			w := newWriteSet(keys, tx, layout.Millis(e.Now))
			w.cluster = &Cluster{keys: keys, clock: sampleClock{}}
			w.cluster.random = &lockedReader{r: strings.NewReader(strings.Repeat("0123456789abcdef", 64))}
			w.Apply(&before, &after)
			require.NoError(t, w.Flush(context.Background()))
			tx.Cancel()
		}
	}
	delete(kinds, layout.SubFutures)
	return slices.Sorted(maps.Keys(kinds))
}

// sampleClock stands at the time of the sample events.
type sampleClock struct{ Clock }

func (sampleClock) Now() time.Time { return time.UnixMilli(1_000_000) }

// kindsTx notes the subspaces of what is written.
type kindsTx struct {
	kv.Tx
	kinds map[string]bool
}

func (k *kindsTx) note(key []byte) {
	if parsed := layout.ParseKey(key); parsed.Subspace != "" {
		k.kinds[parsed.Subspace] = true
	}
}

func (k *kindsTx) Set(key, value []byte)                    { k.note(key); k.Tx.Set(key, value) }
func (k *kindsTx) Clear(key []byte)                         { k.note(key); k.Tx.Clear(key) }
func (k *kindsTx) ClearRange(r kv.Range)                    { k.note(r.Begin); k.Tx.ClearRange(r) }
func (k *kindsTx) Atomic(op kv.AtomicOp, key, param []byte) { k.note(key); k.Tx.Atomic(op, key, param) }
func (k *kindsTx) SetVersionstampedKey(key []byte, at int, v []byte) {
	k.note(key)
	k.Tx.SetVersionstampedKey(key, at, v)
}
func (k *kindsTx) SetVersionstampedValue(key, v []byte, at int) {
	k.note(key)
	k.Tx.SetVersionstampedValue(key, v, at)
}

var (
	sampleNow   = time.UnixMilli(1_000_000)
	sampleToken = layout.Token{Worker: "a", Sequence: 1}
)

// sampleRows are futures of all states and with all that indexes follow.
func sampleRows() (rows []layout.Row) {
	for _, spec := range []layout.Spec{
		{}, {Owner: "o"}, {Session: "s"}, {AsObject: true, Inputs: layout.PackIDs([]layout.ID{{1}})},
		{Unique: &layout.Unique{Name: "0123456789abcdef0123456789abcdef"}}, {Lane: layout.Lane{Kind: "k", Key: "l"}},
		{ExpiresAt: 1}, {Bundle: true, Lane: layout.Lane{Kind: "k", Key: "l"}},
	} {
		spec.Function, spec.Queue, spec.MaxRetries = "go:f", layout.DefaultQueue, 1
		for _, make := range []func(*layout.Row){
			func(r *layout.Row) { r.Blocked = &layout.BlockedRecord{Linked: 1} },
			func(*layout.Row) {},
			func(r *layout.Row) { r.Attempts.Assigned = "a" },
			func(r *layout.Row) { r.Attempts.Due = layout.Millis(sampleNow) },
			func(r *layout.Row) { r.Attempts.Due = layout.Millis(sampleNow) + 1 },
			func(r *layout.Row) { r.Line = &layout.LineRecord{} },
			func(r *layout.Row) { r.Claim = &layout.Claim{Token: sampleToken} },
			func(r *layout.Row) {
				r.Claim = &layout.Claim{Token: sampleToken}
				r.Result = &layout.Result{Token: sampleToken}
				if r.Spec.AsObject {
					r.Result.Object = "x"
				}
			},
			func(r *layout.Row) {
				r.Exception = &layout.Exception{Kind: layout.KindError, Final: true}
				r.Attempts.Failed = 2
			},
		} {
			own := spec
			row := layout.Row{ID: layout.ID{9}, Spec: &own}
			make(&row)
			rows = append(rows, row)
			row.Dependants = true
			rows = append(rows, row)
		}
	}
	return rows
}

// sampleEvents are an event with what it may carry.
func sampleEvents(kind EventKind) []Event {
	at := time.Duration(0)
	e := Event{Kind: kind, Token: sampleToken, Result: &layout.Result{Token: sampleToken},
		Exception: &layout.Exception{Kind: layout.KindError}, Cancel: &layout.CancelRequest{Reason: "r"}, Now: sampleNow}
	object, permanent, again := e, e, e
	object.Result = &layout.Result{Token: sampleToken, Object: "x"}
	permanent.Permanent = true
	again.RetryIn = &at
	if kind == EventSnooze {
		return []Event{again}
	}
	return []Event{e, object, permanent, again}
}
