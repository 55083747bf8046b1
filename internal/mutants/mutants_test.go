package mutants

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutant is a fault and the suites that must notice it.
type mutant struct {
	name string
	file string // from the root of the module
	old  string // occurs once in the file
	new  string
	by   suites
	// survives is the reason why no suite can notice the fault, if so.
	survives string
}

// suites are packages with their tests, the cheapest first.
type suites []suite

type suite struct {
	of  string // the package, from the root of the module
	run string // the tests, all if empty
	// flags are those of the tests.
	flags []string
}

func all() []mutant {
	var m []mutant
	for _, table := range [][]mutant{
		orderMutants(), logMutants(), endMutants(), readMutants(), claimMutants(), recordMutants(), lifeMutants(),
		submitMutants(),
		janitorMutants(), workerMutants(), deathMutants(), fitMutants(), objectMutants(), edgeMutants(), putMutants(),
		hintMutants(), attemptMutants(), jobMutants(), laneMutants(), limitMutants(), bundleMutants(),
		timeMutants(), uniqueMutants(), protocolMutants(), hostMutants(), headMutants(), peerMutants(), batchMutants(),
		peerSimMutants(), refusalMutants(), sharingMutants(), tableMutants(), topMutants(), coldMutants(),
		stackMutants(), wasmMutants(), askMutants(), activityMutants(), metricMutants(), repairMutants(), traceMutants(),
		promiseMutants(), stepMutants(), forkMutants(), actorMutants(), actorCallMutants(), circleMutants(),
		anomalyMutants(), bankMutants(), snapshotMutants(),
	} {
		m = append(m, table...)
	}
	return m
}

// root is the directory of the module.
func root(t *testing.T) string {
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}

// plant returns the source with the fault in it.
func (m *mutant) plant(t *testing.T) []byte {
	source, err := os.ReadFile(filepath.Join(root(t), m.file))
	require.NoError(t, err)
	require.Equalf(t, 1, strings.Count(string(source), m.old), "%s has changed: fit the mutant to it", m.file)
	require.NotEqual(t, m.old, m.new)
	return []byte(strings.Replace(string(source), m.old, m.new, 1))
}

func TestMutantsFit(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range all() {
		t.Run(m.name, func(t *testing.T) {
			require.False(t, names[m.name], "two mutants have this name")
			names[m.name] = true
			require.NotEmpty(t, m.by)
			requireUsedImports(t, m.plant(t))
		})
	}
	require.Greater(t, len(names), 60)
}

// requireUsedImports requires that a source could compile, as far as its syntax tells: it uses
// each of its imports.
func requireUsedImports(t *testing.T, source []byte) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := s.X.(*ast.Ident); ok {
				used[of.Name] = true
			}
		}
		return true
	})
	for _, i := range file.Imports {
		name := strings.Trim(i.Path.Value, `"`)
		if i.Name != nil {
			name = i.Name.Name
		}
		// The name of a package is a part of its path, such as "msgpack" of "…/msgpack/v5".
		require.True(t, name == "_" || name == "." || slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool {
			return r == '/' || r == '.' || r == '-'
		}), func(part string) bool { return used[part] }), "%s is imported and not used", name)
	}
}

func TestMutantsDie(t *testing.T) {
	some, part, parts := os.Getenv("FUTURA_MUTANT"), 1, 1
	switch which := os.Getenv("FUTURA_MUTANTS"); {
	case strings.Contains(which, "/"):
		n, err := fmt.Sscanf(which, "%d/%d", &part, &parts)
		require.True(t, err == nil && n == 2 && 1 <= part && part <= parts, "FUTURA_MUTANTS=%s: use 1, or a part such as 2/8",
			which)
	case some == "" && which != "1":
		t.Skip("FUTURA_MUTANTS=1 plants the mutants")
	}
	for i, m := range all() {
		if i%parts != part-1 || !strings.Contains(m.name, some) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			killer := m.killer(t)
			switch {
			case m.survives == "" && killer == "":
				t.Errorf("no suite noticed: %s", m.name)
			case m.survives != "" && killer != "":
				t.Errorf("%s notices it: it no longer survives because %s", killer, m.survives)
			case killer != "":
				t.Logf("killed by %s", killer)
			default:
				t.Logf("survives: %s", m.survives)
			}
		})
	}
}

// killer plants the mutant and returns the first suite that fails, empty if none
// does.
func (m *mutant) killer(t *testing.T) string {
	dir := t.TempDir()
	planted := filepath.Join(dir, filepath.Base(m.file))
	require.NoError(t, os.WriteFile(planted, m.plant(t), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root(t), m.file): planted},
	})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	for _, s := range m.by {
		begun := time.Now()
		output, failed := s.fails(t, list)
		if failed {
			return s.of + " " + s.run + " after " + time.Since(begun).Round(time.Second).String() + failures(output)
		}
	}
	return ""
}

// suiteTimeout ends a suite that a fault made hang, which notices it as well.
const suiteTimeout = "5m"

func (s suite) fails(t *testing.T, overlay string) (output string, failed bool) {
	args := []string{"test", "-overlay", overlay, "-tags", "pebblegozstd", "-short", "-vet=off", "-failfast", "-count=1",
		"-timeout", suiteTimeout}
	if s.run != "" {
		args = append(args, "-run", s.run)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(append(args, "./"+s.of), s.flags...)...)
	cmd.Dir = root(t)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "FUTURA_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	out, err := cmd.CombinedOutput()
	output = string(out)
	require.NotContains(t, output, "[build failed]", "the mutant must compile:\n"+output)
	require.NotContains(t, output, "[setup failed]", output)
	require.NotContains(t, output, "no tests to run", "the suite must have tests")
	if err != nil {
		require.Regexp(t, `(?m)^(FAIL|panic:|fatal error:)`, output)
	}
	return output, err != nil
}

// failures are the names of the tests that failed first.
func failures(output string) string {
	var names strings.Builder
	for line := range strings.Lines(output) {
		if name, found := strings.CutPrefix(line, "--- FAIL: "); found && names.Len() < 200 {
			name, _, _ = strings.Cut(name, " ")
			names.WriteString(": " + name)
		}
	}
	if names.Len() == 0 {
		return ": by a panic or a hang"
	}
	return names.String()
}
