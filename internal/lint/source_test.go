package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/futura-run/futura"

// textFile is a file that people read.
type textFile struct {
	path string // from the module's root, with slashes
	text string
}

// goFile is a file of Go, whatever its build tags.
type goFile struct {
	textFile
	syntax    *ast.File
	positions *token.FileSet
}

// dir is the package's path from the module's root, "." for the root.
func (f goFile) dir() string { return path.Dir(f.path) }

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f goFile) line(at token.Pos) int { return f.positions.Position(at).Line }

// tags returns the file's build constraint, empty if it has none.
func (f goFile) tags() string {
	for _, group := range f.syntax.Comments {
		for _, comment := range group.List {
			if constraint, found := strings.CutPrefix(comment.Text, "//go:build "); found {
				return constraint
			}
		}
	}
	return ""
}

func parseGo(t *testing.T, file textFile) goFile {
	parsed, err := file.parse()
	require.NoError(t, err)
	return parsed
}

func (f textFile) parse() (goFile, error) {
	positions := token.NewFileSet()
	syntax, err := parser.ParseFile(positions, f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
	return goFile{textFile: f, syntax: syntax, positions: positions}, err
}

// readGo returns all files of Go, which nobody changes.
func readGo(t *testing.T) []goFile {
	files, err := goFiles()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// goFiles parses the files of Go once for all tests.
var goFiles = sync.OnceValues(func() (files []goFile, err error) {
	texts, err := textFiles()
	for _, f := range texts {
		if err == nil && path.Ext(f.path) == ".go" {
			var parsed goFile
			parsed, err = f.parse()
			files = append(files, parsed)
		}
	}
	return files, err
})

// readText returns the files of the module that people write, without test
// data.
func readText(t *testing.T) []textFile {
	moduleRoot(t)
	files, err := textFiles()
	require.NoError(t, err)
	return files
}

func textFiles() (files []textFile, err error) {
	const root = "../.."
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".ci" && name != root
			if hidden || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !isText(entry.Name()) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		files = append(files, textFile{path: filepath.ToSlash(relative), text: string(text)})
		return err
	})
	return files, err
}

func isText(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".md", ".mod", ".yaml", ".yml", ".toml", ".json", ".sh", ".html", ".css", ".js", ".example":
		return true
	}
	return name == "Makefile" || name == "run"
}

func moduleRoot(t *testing.T) string {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(text), "module "+modulePath+"\n")
	return root
}
