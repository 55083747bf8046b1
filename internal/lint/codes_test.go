package lint

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// codes are the codes of problems of HTTP, where they are made.
var codes = regexp.MustCompile(`(?:\bCode: |NewProblem\([\w.]+, )"([a-z_]+)"`)

// TestPagesNameEachCode finds codes of errors over HTTP that neither of the two pages lists.
func TestPagesNameEachCode(t *testing.T) {
	t.Parallel()
	pages, found := "", map[string]string{"client_gone": ""} // nobody is left to read that one
	for _, file := range readText(t) {
		switch dir := path.Dir(file.path); {
		case file.path == "docs/reference/http.md" || file.path == "docs/reference/batch.md":
			pages += file.text
		case path.Ext(file.path) != ".go" || strings.HasSuffix(file.path, "_test.go"):
		case strings.HasPrefix(dir, "futures/httpapi") || dir == "batch/rest":
			for _, code := range codes.FindAllStringSubmatch(file.text, -1) {
				if _, known := found[code[1]]; !known {
					found[code[1]] = file.path
				}
			}
		}
	}
	require.Greater(t, len(found), 40)
	for code, where := range found {
		if where != "" && !strings.Contains(pages, "`"+code+"`") {
			t.Errorf("%s: no page of docs/reference has the code %s", where, code)
		}
	}
}
