package protocol_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is what the package's own comments say of its types.
type source struct {
	types  map[string]string            // the comment of each type
	fields map[string]map[string]string // those of their fields, by the names in Go
	values map[string]string            // of constants
}

func readSource(t *testing.T) source {
	s := source{types: map[string]string{}, fields: map[string]map[string]string{}, values: map[string]string{}}
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				s.read(g)
			}
		}
	}
	return s
}

func (s *source) read(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = g.Doc.Text()
			if fields, ok := spec.Type.(*ast.StructType); ok {
				s.readFields(spec.Name.Name, fields)
			}
		case *ast.ValueSpec:
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					s.values[name.Name] = valueOf(spec.Values[i])
				}
			}
		}
	}
}

func (s *source) readFields(of string, fields *ast.StructType) {
	s.fields[of] = map[string]string{}
	for _, field := range fields.Fields.List {
		for _, name := range field.Names {
			s.fields[of][name.Name] = field.Doc.Text()
		}
	}
}

// valueOf returns a constant as the wire has it, or nothing.
func valueOf(expression ast.Expr) string {
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, types.ExprString(expression))
	if err != nil || value.Value == nil {
		return ""
	}
	if value.Value.Kind() == constant.String {
		return constant.StringVal(value.Value)
	}
	return value.Value.ExactString()
}

var (
	goName  = regexp.MustCompile(`"[^"]*"|\b[A-Z][A-Za-z0-9]+(\.[A-Z][A-Za-z]+)?\b`)
	wordsIs = regexp.MustCompile(`^(is|are) `)
)

// fieldText returns the comment of a field in the words of the wire.
func (s *source) fieldText(t *testing.T, of, field string, wire map[string]string) string {
	text := strings.Join(strings.Fields(s.fields[of][field]), " ")
	require.NotEmpty(t, text, "%s.%s has no comment", of, field)
	rest, found := strings.CutPrefix(text, field+" ")
	require.True(t, found, "%s.%s: %s", of, field, text)
	text = s.inWords(wordsIs.ReplaceAllString(rest, ""), wire)
	return strings.TrimSuffix(strings.ReplaceAll(text, "|", "\\|"), ".")
}

// typeText returns the first paragraph of a type's comment.
func (s *source) typeText(t *testing.T, of string, wire map[string]string) string {
	text := strings.Join(strings.Fields(s.types[of]), " ")
	rest, found := strings.CutPrefix(text, of+" ")
	require.True(t, found, "%s: %s", of, text)
	rest = s.inWords(wordsIs.ReplaceAllString(rest, ""), wire)
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// inWords replaces names of Go by what the wire has.
func (s *source) inWords(text string, wire map[string]string) string {
	return goName.ReplaceAllStringFunc(text, func(name string) string {
		field, isField := wire[name]
		dialect, isDialect := strings.CutPrefix(name, "Dialect")
		value := s.values[name]
		number, err := strconv.Atoi(value)
		switch {
		case strings.HasPrefix(name, `"`):
			return "`" + strings.Trim(name, `"`) + "`"
		case strings.HasPrefix(name, "Max") && err == nil:
			return strconv.Itoa(number)
		case value != "":
			return "`" + value + "`"
		case isField:
			return "`" + field + "`"
		case isDialect && dialect != "":
			return "*" + strings.ToLower(dialect) + "*"
		case name == "Template.ItemID":
			return "the id of an item, above"
		case s.values["Type"+name] != "":
			return "`" + s.values["Type"+name] + "`"
		}
		return name
	})
}
