package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// unshown are packages for Futura's own tests and benchmarks outside of internal.
func unshown() []string {
	return []string{"fdbmodel/modeltest", "futures/httpapi/stack/stacktest", "workers/wasm/wasmbench"}
}

// TestPublicPackagesHaveExamples finds packages without an example in godoc.
func TestPublicPackagesHaveExamples(t *testing.T) {
	t.Parallel()
	public, shown := map[string]bool{}, map[string]bool{}
	for _, file := range readGo(t) {
		switch {
		case file.isTest():
			shown[file.dir()] = shown[file.dir()] || slices.ContainsFunc(file.syntax.Decls, isExample)
		case file.syntax.Name.Name != "main" && !slices.Contains(unshown(), file.dir()) &&
			!slices.ContainsFunc(strings.Split(file.dir(), "/"), isPrivate):
			public[file.dir()] = true
		}
	}
	for dir := range public {
		if !shown[dir] {
			t.Errorf("%s has no example: add one to %s/example_test.go", dir, dir)
		}
	}
}

func isExample(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	return ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example")
}

func isPrivate(part string) bool {
	return slices.Contains([]string{"internal", "examples", "cmd", "testdata"}, part)
}
