package lint

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckImportsFindsOffences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, imported, problem string
	}{
		{"fdbmodel/kv/x.go", "context", ""},
		{"fdbmodel/kv/x.go", testify + "/require", "may not import"},
		{"fdbmodel/kv/x_test.go", testify + "/require", ""},
		{"fdbmodel/kv/x.go", modulePath + "/internal/clock", "may not import"},
		{"fdbmodel/kv/embedded/x.go", modulePath + "/internal/clock", ""},
		{"fdbmodel/kv/embedded/x.go", pebble + "/record", ""},
		{"futures/x.go", pebble + "/record", "may not import"},
		{"futures/x.go", modulePath + "/workers", "may not import"},
		{"futures/x.go", modulePath + "/fdbmodel/kv", ""},
		{"futures/x.go", "C", "may not import"},
		{"futures/x_test.go", modulePath + "/workers", ""},
		{"cmd/futura/x.go", modulePath + "/futures/futurestest", "only tests may import"},
		{"cmd/futura/x.go", modulePath + "/internal/bench", "may not import"},
		{"cmd/futura-bench/x.go", modulePath + "/internal/bench", ""},
		{"examples/first/x.go", modulePath + "/futures", ""},
		{"examples/first/x.go", modulePath, ""},
		{"futures/x.go", modulePath, "may not import"},
		{"x.go", modulePath + "/fdbmodel/kv/kvopen", ""},
		{"x.go", pebble, "may not import"},
		{"examples/first/x.go", wazero, "may not import"},
		{"unknown/x.go", "context", "not in the import table"},
		{"unknown/x_test.go", "context", "not in the import table"},
	} {
		source := "package x\nimport _ " + strconv.Quote(c.imported) + "\n"
		problems := strings.Join(checkImports(importTable(), parseGo(t, textFile{c.file, source})), "\n")
		if c.problem == "" {
			require.Empty(t, problems, "%v", c)
			continue
		}
		require.Contains(t, problems, c.problem, "%v", c)
	}
}

// checkImports returns what is wrong with a file's imports.
func checkImports(table map[string]imports, file goFile) (problems []string) {
	allowed, known := lookup(table, file.dir())
	if !known {
		return []string{fmt.Sprintf("%s: package %s is not in the import table of internal/lint", file.path, file.dir())}
	}
	if file.isTest() {
		return nil
	}
	for _, spec := range file.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return append(problems, err.Error())
		}
		where := fmt.Sprintf("%s:%d", file.path, file.line(spec.Pos()))
		ours, isOurs := strings.CutPrefix(imported, modulePath+"/")
		if imported == modulePath {
			ours, isOurs = root, true
		}
		switch {
		case file.dir() == "cmd/futura-bench" && ours == "internal/fdbtest": // it measures on a server of its own
		case isOurs && slices.Contains(forTests(), ours) && !slices.Contains(forTests(), file.dir()):
			problems = append(problems, fmt.Sprintf("%s: only tests may import %s", where, ours))
		case isOurs && !mayImportOurs(file.dir(), allowed, ours):
			problems = append(problems, fmt.Sprintf("%s: %s may not import %s", where, file.dir(), ours))
		case !isOurs && !isStandard(imported) && !matchesAny(withBelow(allowed.others), imported):
			problems = append(problems, fmt.Sprintf("%s: %s may not import %s", where, file.dir(), imported))
		}
	}
	return problems
}

func mayImportOurs(importer string, allowed imports, imported string) bool {
	if slices.Contains(everyone(), imported) {
		return importer != "fdbmodel/kv" && importer != "fdbmodel/tuple"
	}
	return matchesAny(allowed.ours, imported)
}

// lookup finds a package in the table, by its name or by one with /... above
// it.
func lookup(table map[string]imports, dir string) (imports, bool) {
	if allowed, known := table[dir]; known {
		return allowed, true
	}
	for _, pattern := range slices.Sorted(maps.Keys(table)) {
		if matches(pattern, dir) {
			return table[pattern], true
		}
	}
	return imports{}, false
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

func matches(pattern, name string) bool {
	above, all := strings.CutSuffix(pattern, "/...")
	return name == above || all && strings.HasPrefix(name, above+"/")
}

func withBelow(modules []string) (patterns []string) {
	for _, module := range modules {
		patterns = append(patterns, module+"/...")
	}
	return patterns
}

// isStandard tells packages of the standard library by the missing dot in the
// first part of their path. "C" is cgo and counts as foreign.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && imported != "C" && path.Clean(imported) == imported
}
