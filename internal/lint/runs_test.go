package lint

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// testRun is a call of go test.
type testRun struct {
	tags     []string
	race     bool
	cgo      bool
	run      *regexp.Regexp
	skip     *regexp.Regexp
	packages []string // directories from the module's root, some with /... behind them
}

// recorder stands in for the command go: it writes down each call of go test, and
// runs what the Makefile asks.
const recorder = `#!/bin/sh
case "$1" in
test)
	line="${CGO_ENABLED:-1}	$PWD"
	for argument; do line="$line	$argument"; done
	printf '%%s\n' "$line" >> '%s'
	;;
env) exec '%s' "$@" ;;
list) if [ "$*" = "list ./..." ]; then exec '%[2]s' "$@"; fi ;;
esac
`

// testRuns are the calls of go test that make test-all makes where all that it looks
// for is installed.
func testRuns(t *testing.T) []testRun {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	real, err := exec.LookPath("go")
	require.NoError(t, err)
	dir := t.TempDir()
	calls, stand := filepath.Join(dir, "calls"), filepath.Join(dir, "go")
	require.NoError(t, os.WriteFile(stand, fmt.Appendf(nil, recorder, calls, real), 0o700))
	command := exec.Command("make", "test-all", "GO="+stand, "CC_FOUND=yes", "FDB_FOUND=yes",
		"MONGO_MODULES="+filepath.Join(dir, "modules"), "--assume-old=lint")
	command.Dir = moduleRoot(t)
	command.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CGO_ENABLED"},
			strings.Split(e, "=")[0])
	})
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	text, err := os.ReadFile(calls)
	require.NoError(t, err)
	var runs []testRun
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		fields := strings.Split(line, "\t")
		from, err := filepath.Rel(command.Dir, fields[1])
		require.NoError(t, err)
		run, err := parseTestRun(filepath.ToSlash(from), fields[3:])
		require.NoError(t, err, line)
		run.cgo = fields[0] != "0"
		runs = append(runs, run)
	}
	return runs
}

// parseTestRun reads the arguments of a go test in a directory.
func parseTestRun(from string, arguments []string) (r testRun, err error) {
	flags := flag.NewFlagSet("go test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var tags, run, skip string
	flags.StringVar(&tags, "tags", "", "")
	flags.StringVar(&run, "run", "", "")
	flags.StringVar(&skip, "skip", "^$", "")
	flags.BoolVar(&r.race, "race", false, "")
	for _, name := range []string{"short", "v"} {
		flags.Bool(name, false, "")
	}
	for _, name := range []string{"vet", "timeout", "p", "count", "mod", "modfile", "gcflags", "parallel"} {
		flags.String(name, "", "")
	}
	if err = flags.Parse(arguments); err != nil {
		return r, err
	}
	r.tags = strings.Split(tags, ",")
	if r.run, err = regexp.Compile(run); err != nil {
		return r, err
	}
	if r.skip, err = regexp.Compile(skip); err != nil {
		return r, err
	}
	for _, name := range flags.Args() {
		inModule, is := strings.CutPrefix(name, modulePath)
		if is {
			r.packages = append(r.packages, path.Join(".", "./"+inModule))
		} else {
			r.packages = append(r.packages, path.Join(from, name))
		}
	}
	return r, nil
}

// runs reports whether a function of a file is among the tests.
func (r *testRun) runs(file goFile, function string) bool {
	if !r.run.MatchString(function) || r.skip.MatchString(function) {
		return false
	}
	if !slices.ContainsFunc(r.packages, func(p string) bool {
		above, many := strings.CutSuffix(p, "/...")
		return file.dir() == above || many && isBelow(file.dir(), above)
	}) {
		return false
	}
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled, context.BuildTags = "linux", "amd64", r.cgo, r.tags
	if r.race {
		context.BuildTags = append(slices.Clone(r.tags), "race")
	}
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file.text)), nil }
	matches, err := context.MatchFile(file.dir(), path.Base(file.path))
	return err == nil && matches
}

// testIndex finds tests by their names.
type testIndex struct {
	packages map[string][]goFile
	literals map[string]map[string]bool
	mu       sync.Mutex
}

func newTestIndex(files []goFile) *testIndex {
	x := &testIndex{packages: map[string][]goFile{}, literals: map[string]map[string]bool{}}
	for _, file := range files {
		x.packages[file.dir()] = append(x.packages[file.dir()], file)
	}
	return x
}

// check returns why a name stands for no test that runs, empty if it does.
func (x *testIndex) check(name testName, runs []testRun) string {
	exists, all := false, ""
	for _, file := range x.packages[name.dir] {
		for _, declaration := range file.syntax.Decls {
			f, is := declaration.(*ast.FuncDecl)
			if !is || !file.isTest() || f.Recv != nil || f.Name.Name != name.function {
				continue
			}
			exists = true
			switch {
			case isSkipped(f):
				all = "is skipped"
			case !slices.ContainsFunc(runs, func(r testRun) bool { return r.runs(file, name.function) }):
				all = "is not run by make test-all"
			default:
				return x.checkPart(name)
			}
		}
	}
	if !exists {
		return "does not exist"
	}
	return all
}

// checkPart looks for the name of a part: a text in the test files of the
// package, or in a package that they import.
func (x *testIndex) checkPart(name testName) string {
	if name.part == "" {
		return ""
	}
	for _, part := range strings.Split(name.part, "/") {
		if !x.says(name.dir, part) {
			return "has no part " + part
		}
	}
	return ""
}

func (x *testIndex) says(dir, part string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.literals[dir] == nil {
		found := map[string]bool{}
		x.literals[dir] = found
		for _, file := range x.packages[dir] {
			if !file.isTest() {
				continue
			}
			collect(file, found)
			for _, i := range file.syntax.Imports {
				imported, _ := strconv.Unquote(i.Path.Value) // it was parsed
				for _, other := range x.packages[strings.TrimPrefix(imported, modulePath+"/")] {
					if !other.isTest() {
						collect(other, found)
					}
				}
			}
		}
	}
	return x.literals[dir][part]
}

// collect adds the texts of a file, as go test writes them in names.
func collect(file goFile, into map[string]bool) {
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				into[strings.ReplaceAll(text, " ", "_")] = true
			}
		}
		return true
	})
}

// isSkipped reports whether a test does nothing where make test-all runs it: in a
// short run, without variables that ask for more.
func isSkipped(f *ast.FuncDecl) bool {
	for _, s := range f.Body.List {
		if isSkip(s) {
			return true
		}
		branch, is := s.(*ast.IfStmt)
		if is && asksForMore(branch.Cond) && slices.ContainsFunc(branch.Body.List, isSkip) {
			return true
		}
	}
	return false
}

func isSkip(s ast.Stmt) bool {
	expression, is := s.(*ast.ExprStmt)
	if !is {
		return false
	}
	return slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, calledMethod(expression.X))
}

func calledMethod(e ast.Expr) string {
	call, is := e.(*ast.CallExpr)
	if !is {
		return ""
	}
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	return selector.Sel.Name
}

// asksForMore reports whether a condition is that of a short run, or compares a
// variable of the environment.
func asksForMore(e ast.Expr) bool {
	comparison, is := e.(*ast.BinaryExpr)
	return calledMethod(e) == "Short" || is && calledMethod(comparison.X) == "Getenv"
}

func TestTestsThatRunAreFound(t *testing.T) {
	t.Parallel()
	file := func(name, source string) goFile { return parseGo(t, textFile{name, source}) }
	x := newTestIndex([]goFile{
		file("a/suite/suite.go", "package suite\n\nvar parts = []string{\"One part\"}\n"),
		file("a/a.go", "package a\n\nfunc TestNot() {}\n"),
		file("a/a_test.go", `package a

import _ "`+modulePath+`/a/suite"

func TestA(t *testing.T) { t.Run("mine", nil) }

func TestNever(t *testing.T) { t.Skip("x") }

func TestLong(t *testing.T) {
	if os.Getenv("MORE") != "1" {
		t.Skip("x")
	}
}

func TestNotShort(t *testing.T) {
	if testing.Short() {
		t.SkipNow()
	}
}

func TestRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("x")
	}
}
`),
		file("a/fdb_test.go", "//go:build fdb\n\npackage a\n\nfunc TestServer(t *testing.T) {}\n"),
		file("a/x_windows_test.go", "package a\n\nfunc TestWindows(t *testing.T) {}\n"),
		file("b/b_test.go", "package b\n\nfunc TestB(t *testing.T) {}\n\nfunc TestOther(t *testing.T) {}\n"),
		file("c/d/d_test.go", "package d\n\nfunc TestD(t *testing.T) {}\n\nfunc TestLeftOut(t *testing.T) {}\n"),
	})
	var runs []testRun
	for _, arguments := range []string{
		"-tags x -race -short -vet=off -timeout 10m " + modulePath + "/a " + modulePath,
		"-tags fdb,x -run TestB$ ./b", "-skip LeftOut ./c/...",
	} {
		run, err := parseTestRun(".", strings.Fields(arguments))
		require.NoError(t, err)
		runs = append(runs, run)
	}
	require.Equal(t, []string{"a", "."}, runs[0].packages)
	for name, says := range map[testName]string{
		{"a", "TestA", ""}: "", {"a", "TestA", "mine"}: "", {"a", "TestA", "One_part"}: "",
		{"a", "TestA", "other"}: "has no part other", {"a", "TestNot", ""}: "does not exist",
		{"b", "TestA", ""}: "does not exist", {"a", "TestNever", ""}: "is skipped", {"a", "TestLong", ""}: "is skipped",
		{"a", "TestNotShort", ""}: "is skipped", {"a", "TestRoot", ""}: "",
		{"a", "TestServer", ""}:  "is not run by make test-all",
		{"a", "TestWindows", ""}: "is not run by make test-all", {"b", "TestB", ""}: "",
		{"b", "TestOther", ""}: "is not run by make test-all", {"c/d", "TestD", ""}: "",
		{"c/d", "TestLeftOut", ""}: "is not run by make test-all",
	} {
		require.Equal(t, says, x.check(name, runs), name)
	}
	_, err := parseTestRun(".", []string{"-unknown"})
	require.Error(t, err)
}
