package fdbmodel

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/state"
)

const eventsPage = "../docs/reference/events.md"

const eventsHead = `# Events

An event changes a future as the [state machine](state_machine.md) says. For each event this page has the functions that
apply it, the keys that follow and some tests. ` + "`make generate`" + ` writes it.

- **Functions** are read from the sources. The package of a function is its directory.
- **Keys** are kinds of [keyspace.md](keyspace.md); the records of the future itself are left out. They are recorded by
  applying each event to sample futures: plain ones, and ones with an owner, a lane, a bundle, inputs, an object that
  they must be near, a time limit, a unique name, tags, promises, and a client that waits. Keys that the functions write
  themselves are added from a list in the generator.
- **Tests** come from a list in the generator, which checks that each test exists and asks for the event.

The state grid (` + "`TestStateGrid`" + `), the machine test (` + "`TestMachine`" + `) and the simulation
(` + "`TestSim`" + ` of ` + "`internal/sim`" + `) have all events.

| event | function | keys | tests |
| --- | --- | --- | --- |
`

// TestDocsEvents compares the page with the code.
func TestDocsEvents(t *testing.T) {
	t.Parallel()
	sources := readSources(t)
	samples := newSamples(t)
	var b strings.Builder
	b.WriteString(eventsHead)
	for _, kind := range state.Events() {
		functions := sources.functions["Event"+eventIdent(kind)]
		require.NotEmpty(t, functions, "nothing applies the event %v", kind)
		fmt.Fprintf(&b, "| %v | %s | %s | %s |\n", kind, strings.Join(functions, "<br>"),
			strings.Join(samples.keysOf(t, kind), ", "), strings.Join(sources.testsOf(t, kind), "<br>"))
	}
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(eventsPage, []byte(b.String()), 0o644))
	}
	page, err := os.ReadFile(eventsPage)
	require.NoError(t, err)
	require.True(t, b.String() == string(page), "%s is stale: run make generate", eventsPage)
}

// eventIdent is how the constant of an event ends.
func eventIdent(k state.EventKind) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(k.String()) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// sources are what the Go files of the model say of events.
type sources struct {
	functions map[string][]string                   // by the constant of the event
	tests     map[string]map[string]map[string]bool // by directory and function: the names in its body
}

func readSources(t *testing.T) *sources {
	s := &sources{functions: map[string][]string{}, tests: map[string]map[string]map[string]bool{}}
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
		s.addTest(filepath.ToSlash(filepath.Dir(where)), fn)
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
	shown := fmt.Sprintf("`%s` %s", fn.Name.Name, where)
	for name := range applied {
		if !slices.Contains(s.functions[name], shown) { // methods of two types may have one name
			s.functions[name] = append(s.functions[name], shown)
		}
	}
}
