package lint

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quote is a block of Go in a page, and where it is from: a file, and the names
// of its declarations that are quoted whole, none for the whole file.
type quote struct {
	page  string
	line  int
	file  string
	names []string
	text  string
}

// quoteMark stands above a quote:
//
//	<!-- examples/orders/main.go priceAll -->
var quoteMark = regexp.MustCompile(`^<!-- (\S+\.go)((?: [\w.]+)*) -->$`)

// mustQuote reports whether all Go of a page is to be quoted from programs.
func mustQuote(page string) bool {
	return page == "README.md" || strings.HasPrefix(page, "docs/guide/") || strings.HasPrefix(page, "docs/start/")
}

// quotesOf returns the blocks of Go in a page.
func quotesOf(page textFile) (quotes []quote) {
	mark, inside := quote{}, false
	for i, line := range strings.Split(page.text, "\n") {
		found := quoteMark.FindStringSubmatch(line)
		switch {
		case inside && line == "```":
			quotes, inside, mark = append(quotes, mark), false, quote{}
		case inside:
			mark.text += line + "\n"
		case line == "```go":
			mark.page, mark.line, inside = page.path, i+1, true
		case found != nil:
			mark = quote{file: found[1], names: strings.Fields(found[2])}
		case line != "":
			mark = quote{}
		}
	}
	return quotes
}

// declared returns the source of a declaration at the top of a file, with its
// comment, empty if there is none of that name.
func declared(file goFile, name string) string {
	for _, d := range file.syntax.Decls {
		if !declares(d, name) {
			continue
		}
		from := d.Pos()
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		}
		position := file.positions.Position
		return file.text[position(from).Offset:position(d.End()).Offset] + "\n"
	}
	return ""
}

func declares(d ast.Decl, name string) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.Name == name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.Name == name {
					return true
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					if n.Name == name {
						return true
					}
				}
			}
		}
	}
	return false
}

// problem says what is wrong with a quote, nothing if it is its source.
func (q quote) problem(files []goFile) string {
	where := fmt.Sprintf("%s:%d: ", q.page, q.line)
	if q.file == "" {
		if mustQuote(q.page) {
			return where + "Go without a mark of where it is from, such as <!-- examples/hello/main.go -->"
		}
		return ""
	}
	for _, file := range files {
		if file.path != q.file {
			continue
		}
		want := file.text
		if len(q.names) > 0 {
			var parts []string
			for _, name := range q.names {
				part := declared(file, name)
				if part == "" {
					return where + q.file + " does not declare " + name
				}
				parts = append(parts, part)
			}
			want = strings.Join(parts, "\n")
		}
		if q.text != want {
			return fmt.Sprintf("%sis not as %s has it, which is\n%s", where, q.file, want)
		}
		return ""
	}
	return where + "there is no file " + q.file
}

func TestPagesQuotePrograms(t *testing.T) {
	t.Parallel()
	files := readGo(t)
	quoted := 0
	for _, page := range readText(t) {
		if !strings.HasSuffix(page.path, ".md") {
			continue
		}
		for _, q := range quotesOf(page) {
			if problem := q.problem(files); problem != "" {
				t.Error(problem)
			}
			if q.file != "" {
				quoted++
			}
		}
	}
	require.NotZero(t, quoted)
}

func TestQuotesAreHeldToTheirFiles(t *testing.T) {
	t.Parallel()
	source := "package p\n\n// A is one.\nvar A = 1\n\nfunc f() {}\n"
	files := []goFile{parseGo(t, textFile{"p/p.go", source})}
	for _, c := range []struct{ page, mark, text, problem string }{
		{"README.md", "<!-- p/p.go -->\n", source, ""},
		{"README.md", "<!-- p/p.go A f -->\n", "// A is one.\nvar A = 1\n\nfunc f() {}\n", ""},
		{"README.md", "<!-- p/p.go f -->\n\n", "func f() {}\n", ""},
		{"README.md", "<!-- p/p.go f -->\n", "func f() { }\n", "is not as p/p.go"},
		{"README.md", "<!-- p/p.go f -->\n", "", "is not as p/p.go"},
		{"README.md", "<!-- p/p.go g -->\n", "func g() {}\n", "does not declare g"},
		{"README.md", "<!-- q/p.go -->\n", source, "there is no file"},
		{"README.md", "<!-- p/p.go f -->\nwords\n", "func f() {}\n", "without a mark"},
		{"docs/start/x.md", "", "func f() {}\n", "without a mark"},
		{"docs/guide/x.md", "", "func f() {}\n", "without a mark"},
		{"docs/operating/x.md", "", "func f() {}\n", ""},
	} {
		quotes := quotesOf(textFile{c.page, c.mark + "```go\n" + c.text + "```\n"})
		require.Len(t, quotes, 1)
		if problem := quotes[0].problem(files); c.problem == "" {
			require.Empty(t, problem)
		} else {
			require.Contains(t, problem, c.problem)
		}
	}
}

// TestNoPageIsEmpty finds pages that were made and never written.
func TestNoPageIsEmpty(t *testing.T) {
	t.Parallel()
	for _, page := range readText(t) {
		if strings.HasSuffix(page.path, ".md") && strings.TrimSpace(page.text) == "" {
			t.Error(page.path + " is empty")
		}
	}
}
