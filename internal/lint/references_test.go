package lint

import (
	"fmt"
	"go/ast"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// references are names of a package of this module, such as kv.Tx or kv.Tx.Get, in a comment.
var references = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// declarations has what the packages of a name declare: their names, with an open type as true, whose members are not
// all known, since it embeds or stands for another one; and TYPE.MEMBER.
type declarations map[string]map[string]bool

func TestCommentsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	files := readGo(t)
	known := declaredIn(files)
	for _, file := range files {
		if !file.isTest() {
			report(t, checkReferences(file, known))
		}
	}
}

// checkReferences finds names in comments that no package of that name has.
func checkReferences(file goFile, known declarations) (problems []string) {
	for _, group := range file.syntax.Comments {
		for _, comment := range group.List {
			for _, m := range references.FindAllStringSubmatch(comment.Text, -1) {
				names := known[m[1]]
				open, found := names[m[2]]
				if _, member := names[m[2]+"."+m[3]]; names == nil || found && (open || member || m[3] == "") {
					continue
				}
				problems = append(problems, fmt.Sprintf("%s:%d: there is no %s", file.path, file.line(comment.Pos()), m[0]))
			}
		}
	}
	return problems
}

func declaredIn(files []goFile) declarations {
	known := declarations{}
	for _, file := range files {
		names := known[file.syntax.Name.Name]
		if names == nil {
			names = map[string]bool{}
			known[file.syntax.Name.Name] = names
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			switch d := node.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d) + "." + name
				}
				names[name] = false
				return false
			case *ast.ValueSpec:
				for _, name := range d.Names {
					names[name.Name] = false
				}
			case *ast.TypeSpec:
				addType(names, d)
			}
			return true
		})
	}
	return known
}

func addType(names map[string]bool, d *ast.TypeSpec) {
	var members *ast.FieldList
	switch kind := d.Type.(type) {
	case *ast.StructType:
		members = kind.Fields
	case *ast.InterfaceType:
		members = kind.Methods
	default:
		names[d.Name.Name] = true
		return
	}
	names[d.Name.Name] = names[d.Name.Name]
	for _, member := range members.List {
		for _, name := range member.Names {
			names[d.Name.Name+"."+name.Name] = false
		}
		names[d.Name.Name] = names[d.Name.Name] || len(member.Names) == 0
	}
}

func receiver(d *ast.FuncDecl) (name string) {
	ast.Inspect(d.Recv.List[0].Type, func(node ast.Node) bool {
		if id, ok := node.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func TestReferencesFindOffences(t *testing.T) {
	t.Parallel()
	source := "package y\n\ntype T struct{ A int }\n\ntype O struct{ T }\n\nfunc (t *T) M() {}\n"
	y := parseGo(t, textFile{"y/y.go", source})
	for reference, found := range map[string]bool{
		"y.T": true, "y.T.A": true, "y.T.M": true, "y.O.X": true, "z.T": true, "y.N": false, "y.T.X": false,
	} {
		file := parseGo(t, textFile{"x/a.go", "package x\n\n// F is as " + reference + ".\nfunc F() {}\n"})
		require.Equal(t, found, len(checkReferences(file, declaredIn([]goFile{y, file}))) == 0, reference)
	}
}
