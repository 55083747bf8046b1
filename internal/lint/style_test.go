package lint

import (
	"fmt"
	"go/ast"
	"go/format"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Limits of a file of Go.
const (
	maxFileLines     = 500
	maxFunctionLines = 70
	maxColumns       = 120
)

// textRules are the rules of every file.
func textRules() []func(textFile) []string {
	return []func(textFile) []string{checkMachinePaths}
}

// goRules are the rules of every file of Go.
func goRules() []func(goFile) []string {
	return []func(goFile) []string{checkSize, checkFormat, checkFunctions, checkNames, checkCalls, checkComments,
		checkDocumented}
}

func TestFilesFollowTheRules(t *testing.T) {
	t.Parallel()
	for _, file := range readText(t) {
		for _, rule := range textRules() {
			report(t, rule(file))
		}
	}
	for _, file := range readGo(t) {
		for _, rule := range goRules() {
			report(t, rule(file))
		}
	}
}

func TestPackagesFollowTheRules(t *testing.T) {
	t.Parallel()
	packages := map[string][]goFile{}
	for _, file := range readGo(t) {
		if !file.isTest() {
			packages[file.dir()] = append(packages[file.dir()], file)
		}
	}
	for _, files := range packages {
		report(t, checkPackage(files))
	}
}

func report(t *testing.T, problems []string) {
	for _, problem := range problems {
		t.Error(problem)
	}
}

var machinePath = regexp.MustCompile("(^|[\\s\"'`=(:])/(work|root|home|Users|tmp)/[a-zA-Z]")

// checkMachinePaths finds paths of the machine that something was written on.
func checkMachinePaths(file textFile) (problems []string) {
	for i, line := range strings.Split(file.text, "\n") {
		if machinePath.MatchString(line) {
			problems = append(problems, fmt.Sprintf("%s:%d: path of a machine", file.path, i+1))
		}
	}
	return problems
}

// checkSize bounds a file's lines and their length.
func checkSize(file goFile) (problems []string) {
	lines := strings.Split(strings.TrimSuffix(file.text, "\n"), "\n")
	if len(lines) > maxFileLines {
		problems = append(problems, fmt.Sprintf("%s: %d lines, at most %d", file.path, len(lines), maxFileLines))
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxColumns {
			problems = append(problems, fmt.Sprintf("%s:%d: %d columns, at most %d", file.path, i+1, n, maxColumns))
		}
	}
	return problems
}

func checkFormat(file goFile) []string {
	formatted, err := format.Source([]byte(file.text))
	if err != nil || string(formatted) != file.text {
		return []string{file.path + ": not formatted by gofmt"}
	}
	return nil
}

// checkFunctions bounds the length of functions and forbids init.
func checkFunctions(file goFile) (problems []string) {
	for _, declaration := range file.syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := file.line(function.End()) - file.line(function.Pos()) + 1
		where := fmt.Sprintf("%s:%d", file.path, file.line(function.Pos()))
		if lines > maxFunctionLines && !file.isTest() {
			problems = append(problems, fmt.Sprintf("%s: %s has %d lines, at most %d",
				where, function.Name.Name, lines, maxFunctionLines))
		}
		if function.Name.Name == "init" && function.Recv == nil {
			problems = append(problems, where+": no init functions")
		}
	}
	return problems
}

// checkNames forbids package names without meaning.
func checkNames(file goFile) []string {
	for _, part := range append(strings.Split(file.dir(), "/"), file.syntax.Name.Name) {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}, part) {
			return []string{fmt.Sprintf("%s: a package named %s is about nothing", file.path, part)}
		}
	}
	return nil
}

// checkCalls forbids functions by their names.
func checkCalls(file goFile) (problems []string) {
	mayPrint := file.isTest() || isBelow(file.dir(), "cmd") || isBelow(file.dir(), "examples")
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, _ := selector.X.(*ast.Ident)
		full := selector.Sel.Name
		if of != nil {
			full = of.Name + "." + full
		}
		where := fmt.Sprintf("%s:%d: ", file.path, file.line(node.Pos()))
		switch {
		case selector.Sel.Name == "MustGet":
			problems = append(problems, where+"MustGet panics: use Get")
		case full == "time.Sleep":
			problems = append(problems, where+"time.Sleep: wait for what you wait for, or on a clock")
		case full == "synctest.Test" && file.dir() != "internal/bubble":
			problems = append(problems, where+"synctest.Test: use bubble.Test, which the race detector bears")
		case !mayPrint && slices.Contains([]string{"fmt.Print", "fmt.Printf", "fmt.Println"}, full):
			problems = append(problems, where+full+" outside of cmd")
		}
		return true
	})
	return problems
}

func isBelow(dir, above string) bool { return dir == above || strings.HasPrefix(dir, above+"/") }

var leftOver = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

func checkComments(file goFile) (problems []string) {
	for _, group := range file.syntax.Comments {
		for _, comment := range group.List {
			if leftOver.MatchString(comment.Text) {
				problems = append(problems, fmt.Sprintf("%s:%d: work left over", file.path, file.line(comment.Pos())))
			}
		}
	}
	return problems
}

// checkDocumented wants a comment on every exported function and type, and on
// exported methods of exported types.
func checkDocumented(file goFile) (problems []string) {
	if file.isTest() || file.syntax.Name.Name == "main" {
		return nil
	}
	missing := func(node ast.Node, name string) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s has no comment", file.path, file.line(node.Pos()), name))
	}
	for _, declaration := range file.syntax.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && isExportedReceiver(d.Recv) {
				missing(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
					missing(s, s.Name.Name)
				}
			}
		}
	}
	return problems
}

func isExportedReceiver(receiver *ast.FieldList) bool {
	if receiver == nil {
		return true
	}
	exported := false
	ast.Inspect(receiver.List[0].Type, func(node ast.Node) bool {
		name, ok := node.(*ast.Ident)
		if ok {
			exported = name.IsExported()
		}
		return !ok
	})
	return exported
}

// checkPackage wants one comment that says what a package is for, and a file
// that is there without build tags.
func checkPackage(files []goFile) (problems []string) {
	name, dir := files[0].syntax.Name.Name, files[0].dir()
	documented, untagged := 0, false
	for _, file := range files {
		untagged = untagged || file.tags() == ""
		if file.syntax.Doc == nil {
			continue
		}
		documented++
		text := file.syntax.Doc.Text()
		if name != "main" && !strings.HasPrefix(text, "Package "+name+" ") {
			problems = append(problems, fmt.Sprintf("%s: the comment must begin with Package %s", file.path, name))
		}
	}
	if documented != 1 {
		problems = append(problems, fmt.Sprintf("%s: %d package comments, need one", dir, documented))
	}
	if !untagged {
		problems = append(problems, fmt.Sprintf("%s: every file has build tags, so vet can't load it", dir))
	}
	return problems
}

func TestRulesFindOffences(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\n", maxFunctionLines)
	for _, c := range []struct {
		path, source, problem string
	}{
		{"x/a.go", "package x\n", ""},
		{"x/a.go", "package x\n" + strings.Repeat("\n", maxFileLines), "501 lines"},
		{"x/a.go", "package x\n\n// " + strings.Repeat("é", maxColumns) + "\n", "123 columns"},
		{"x/a.go", "package x\nfunc  f() {}\n", "gofmt"},
		{"x/a.go", "package x\n\nfunc f() {" + long + "}\n", "f has 71 lines"},
		{"x/a_test.go", "package x\n\nfunc f() {" + strings.Replace(long, "\n", "\n\t_ = 1", 1) + "}\n", "gofmt"},
		{"x/a.go", "package x\n\nfunc init() {}\n", "no init"},
		{"x/util/a.go", "package util\n", "about nothing"},
		{"x/a.go", "package x\n\nvar x = future.MustGet()\n", "MustGet"},
		{"x/a_test.go", "package x\n\nfunc f() { time.Sleep(1) }\n", "time.Sleep"},
		{"x/a_test.go", "package x\n\nfunc f() { synctest.Test(nil, nil) }\n", "bubble.Test"},
		{"internal/bubble/a.go", "package bubble\n\nfunc f() { synctest.Test(nil, nil) }\n", ""},
		{"x/a.go", "package x\n\nfunc f() { fmt.Println() }\n", "fmt.Println"},
		{"cmd/x/a.go", "package x\n\nfunc f() { fmt.Println() }\n", ""},
		{"x/a.go", "package x\n\nvar a int // " + "TO" + "DO: b\n", "left over"},
		{"x/a.go", "package x\n\nfunc F() {}\n", "F has no comment"},
		{"x/a.go", "package x\n\ntype T struct{}\n", "T has no comment"},
		{"x/a.go", "package x\n\ntype t struct{}\n\nfunc (t) M() {}\n", ""},
		{"x/a.go", "package x\n\n// T is.\ntype T[A any] struct{}\n\nfunc (*T[A]) M() {}\n", "M has no comment"},
		{"x/a.go", "package x\n\nconst a = \"" + "/ro" + "ot/x\"\n", "path of a machine"},
		{"x/a.go", "package x\n\nconst a = \"api/work/x\"\n", ""},
	} {
		file := parseGo(t, textFile{c.path, c.source})
		var problems []string
		for _, rule := range textRules() {
			problems = append(problems, rule(file.textFile)...)
		}
		for _, rule := range goRules() {
			problems = append(problems, rule(file)...)
		}
		if c.problem == "" {
			require.Empty(t, problems, c.source)
			continue
		}
		require.Contains(t, strings.Join(problems, "\n"), c.problem, c.source)
	}
}

func TestPackageRulesFindOffences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files   []string
		problem string
	}{
		{[]string{"// Package x is.\npackage x\n", "package x\n"}, ""},
		{[]string{"package x\n"}, "0 package comments"},
		{[]string{"// Package x is.\npackage x\n", "// Package x is.\npackage x\n"}, "2 package comments"},
		{[]string{"// It is.\npackage x\n"}, "must begin with Package x"},
		{[]string{"//go:build fdb\n\n// Package x is.\npackage x\n"}, "every file has build tags"},
		{[]string{"// Futura is.\npackage main\n"}, ""},
	} {
		var files []goFile
		for _, source := range c.files {
			files = append(files, parseGo(t, textFile{path.Join("x", "a.go"), source}))
		}
		problems := strings.Join(checkPackage(files), "\n")
		if c.problem == "" {
			require.Empty(t, problems, c.files)
			continue
		}
		require.Contains(t, problems, c.problem, c.files)
	}
}
