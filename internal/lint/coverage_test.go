package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// coveragePage says statement by statement what holds of the product's design.
const coveragePage = "docs/reference/seed-coverage.md"

// Statuses of a statement.
const (
	asWritten   = "as written"
	differently = "differently"
	untested    = "untested"
	notYet      = "not yet"
)

func statuses() []string { return []string{asWritten, differently, untested, notYet} }

// statement is a row of the page.
type statement struct {
	line   int
	table  string
	id     string
	status string
	how    string
	tests  []testName
}

// testName is a test: the directory of its package from the module's root, its
// function, and a part of it, empty for the whole.
type testName struct{ dir, function, part string }

func (n testName) String() string {
	return strings.TrimSuffix(n.dir+":"+n.function+"/"+n.part, "/")
}

var (
	statementRow  = regexp.MustCompile(`^\| [A-Z][0-9]+ \|`)
	statementID   = regexp.MustCompile(`^[A-Z][0-9]+$`)
	statementTest = regexp.MustCompile("^`([a-z0-9/.]+):((?:Test|Fuzz|Example)\\w*)(?:/([^`]+))?`$")
)

// readStatements returns the statements of a page, and what is wrong with their
// rows.
func readStatements(page string) (found []statement, problems []string) {
	table, next := "", 0
	for i, line := range strings.Split(page, "\n") {
		if heading, is := strings.CutPrefix(line, "## "); is {
			table, next = heading, 1
		}
		if !statementRow.MatchString(line) {
			continue
		}
		wrong := func(format string, a ...any) {
			problems = append(problems, fmt.Sprintf("line %d: ", i+1)+fmt.Sprintf(format, a...))
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if len(cells) != 5 {
			wrong("%d columns: want 5", len(cells))
			continue
		}
		s := statement{line: i + 1, table: table, id: cells[0], status: cells[2], how: cells[3]}
		if number, err := strconv.Atoi(s.id[1:]); !statementID.MatchString(s.id) || err != nil || number != next {
			wrong("%s is not number %d of its table", s.id, next)
		}
		next++
		if !slices.Contains(statuses(), s.status) {
			wrong("%s has the status %q: use one of %v", s.id, s.status, statuses())
		}
		if s.status == differently && strings.Trim(s.how, " –") == "" {
			wrong("%s does not say how", s.id)
		}
		for _, name := range strings.Split(cells[4], ", ") {
			if parts := statementTest.FindStringSubmatch(name); parts != nil {
				s.tests = append(s.tests, testName{parts[1], parts[2], parts[3]})
			} else if cells[4] != "–" {
				wrong("%s names %q: want `package:Test` or `package:Test/part`", s.id, name)
			}
		}
		if shown := s.status == asWritten || s.status == differently; shown != (len(s.tests) > 0) {
			wrong("%s is %s and names %d tests", s.id, s.status, len(s.tests))
		}
		found = append(found, s)
	}
	return found, problems
}

// countStatements is a table of how many statements have which status.
func countStatements(all []statement) string {
	var tables []string
	for _, s := range all {
		if !slices.Contains(tables, s.table) {
			tables = append(tables, s.table)
		}
	}
	var b strings.Builder
	row := func(name string, of func(statement) bool) {
		fmt.Fprintf(&b, "| %s |", name)
		total := 0
		for _, status := range statuses() {
			n := 0
			for _, s := range all {
				if s.status == status && of(s) {
					n++
				}
			}
			fmt.Fprintf(&b, " %d |", n)
			total += n
		}
		fmt.Fprintf(&b, " %d |\n", total)
	}
	fmt.Fprintf(&b, "| | %s | together |\n|%s\n", strings.Join(statuses(), " | "),
		strings.Repeat(" --- |", len(statuses())+2))
	for _, table := range tables {
		row(table, func(s statement) bool { return s.table == table })
	}
	row("together", func(statement) bool { return true })
	return b.String()
}

// TestDocsCoverage checks the rows of the page, and that the counts at its head
// are theirs.
func TestDocsCoverage(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- counts: written by make generate -->\n", "<!-- end of counts -->\n"
	path := filepath.Join(moduleRoot(t), filepath.FromSlash(coveragePage))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	all, problems := readStatements(string(page))
	report(t, problems)
	require.NotEmpty(t, all)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + begin + "\n" + countStatements(all) + "\n" + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run make generate")
}

// TestCoverageNamesTestsThatRun checks that the tests that the page names exist,
// and that make test-all runs them.
func TestCoverageNamesTestsThatRun(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(coveragePage)))
	require.NoError(t, err)
	all, _ := readStatements(string(page))
	runs, known := testRuns(t), newTestIndex(readGo(t))
	for _, s := range all {
		for _, name := range s.tests {
			if problem := known.check(name, runs); problem != "" {
				t.Errorf("%s:%d: %s: %s %s", coveragePage, s.line, s.id, name, problem)
			}
		}
	}
}

func TestCoverageRowsAreChecked(t *testing.T) {
	t.Parallel()
	for row, says := range map[string]string{
		"| A1 | x | as written | – | `a/b:TestX`, `.:FuzzY/some_part` |":   "",
		"| A1 | x | not yet | – | – |":                                     "",
		"| A1 | x | untested | as written | – |":                           "",
		"| A1 | x | as written | – |":                                      "4 columns",
		"| A2 | x | not yet | – | – |":                                     "is not number 1",
		"| A1 | x | done | – | – |":                                        `the status "done"`,
		"| A1 | x | as written | – | – |":                                  "names 0 tests",
		"| A1 | x | not yet | – | `a:TestX` |":                             "names 1 tests",
		"| A1 | x | differently | – | `a:TestX` |":                         "does not say how",
		"| A1 | x | as written | – | TestX |":                              `names "TestX"`,
		"| A1 | x | as written | – | `a:TestX` `a:TestY` |":                "want `package:Test`",
		"| A1 | x | not yet | – | – |\n| A1 | y | not yet | – | – |":       "is not number 2",
		"| A1 | x | not yet | – | – |\n## B\n| B1 | y | not yet | – | – |": "",
	} {
		_, problems := readStatements("## A\n" + row)
		if says == "" {
			require.Empty(t, problems, row)
			continue
		}
		require.Contains(t, strings.Join(problems, "\n"), says, row)
	}
	all, problems := readStatements("## A\n| A1 | x | not yet | – | – |\n## B\n| B1 | y | as written | – | `a:TestX` |")
	require.Empty(t, problems)
	require.Equal(t, `| | as written | differently | untested | not yet | together |
| --- | --- | --- | --- | --- | --- |
| A | 0 | 0 | 0 | 1 | 1 |
| B | 1 | 0 | 0 | 0 | 1 |
| together | 1 | 0 | 0 | 1 | 2 |
`, countStatements(all))
}
