package batch_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/batch"
)

func TestMethodsHaveAliases(t *testing.T) {
	t.Parallel()
	require.Equal(t, "bafy/echo.wasm", batch.FunctionAlias("bafy", "echo.wasm"))
	for _, c := range [][2]string{
		{"bafy", "dir/echo.wasm"}, {"my func", "echo.wasm"}, {"a/b", "c"}, {"a", ""}, {"", "b"},
		{strings.Repeat("x", 129), "echo.wasm"}, {"a", strings.Repeat("x", 65)},
	} {
		require.Regexp(t, "^b7s-[0-9a-f]{64}$", batch.FunctionAlias(c[0], c[1]), "%q", c)
	}
}

func TestNoTwoMethodsHaveOneAlias(t *testing.T) {
	t.Parallel()
	alias := regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,64})?$`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab./-]{0,4}`)
		id1, id2, m1, m2 := name.Draw(t, "id1"), name.Draw(t, "id2"), name.Draw(t, "m1"), name.Draw(t, "m2")
		one, two := batch.FunctionAlias(id1, m1), batch.FunctionAlias(id2, m2)
		require.Regexp(t, alias, one)
		if id1+"/"+m1 != id2+"/"+m2 {
			require.NotEqual(t, one, two)
		}
	})
}

func TestFunctionsOfATemplate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, method string
		want       []string
	}{
		{"bafy", "echo.wasm", []string{"wasm:bafy/echo.wasm"}},
		{"bafy", "run", []string{"wasm:bafy/run"}},
		{"bafy", "", []string{"wasm:" + batch.FunctionAlias("bafy", ""), "wasm:bafy"}},
		{"go:upper", "", []string{"go:upper"}},
		{"my func", "a.wasm", []string{"wasm:" + batch.FunctionAlias("my func", "a.wasm")}},
		{"bafy", "a/b", []string{"wasm:" + batch.FunctionAlias("bafy", "a/b")}},
	} {
		template := batch.Template{FunctionID: c.id, Method: c.method}
		require.Equal(t, c.want, template.Functions())
	}
}
