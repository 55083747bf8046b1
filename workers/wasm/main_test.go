package wasm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// long turns on what takes many seconds.
var long = os.Getenv("FUTURA_LONG") == "1"

// testDir is for what all tests share: built functions and compiled code.
var testDir string

func TestMain(m *testing.M) {
	hostileChild()
	ChildMain()
	if dir := os.Getenv(stepsDirVariable); dir != "" {
		os.Exit(stepsMain(dir))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "futura-wasm-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	testDir = dir
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString("leak: " + err.Error() + "\n")
		return 1
	}
	return code
}

// builds holds one build per package and mode.
var builds sync.Map // of package path and mode to func() ([]byte, error)

// goFunction builds a package of this module as a function that runs from its start.
func goFunction(tb testing.TB, path string) []byte { return goModule(tb, path, "exe") }

// goMethods builds a package of this module as functions that are its methods.
func goMethods(tb testing.TB, path string) []byte { return goModule(tb, path, "c-shared") }

func goModule(tb testing.TB, path, mode string) []byte {
	tb.Helper()
	build, _ := builds.LoadOrStore(path+mode, sync.OnceValues(func() ([]byte, error) {
		out := filepath.Join(testDir, filepath.Base(path)+mode+".wasm")
		command := exec.Command("go", "build", "-buildmode="+mode, "-trimpath", "-ldflags=-s -w", "-o", out, path)
		command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
		if text, err := command.CombinedOutput(); err != nil {
			return text, err
		}
		return os.ReadFile(out)
	}))
	module, err := build.(func() ([]byte, error))()
	require.NoError(tb, err, "%s", module)
	return module
}

const examples = "github.com/futura-run/futura/examples/wasm/"

// newExecutor starts an executor that ends with the test.
func newExecutor(tb testing.TB, config Config) *Executor {
	tb.Helper()
	if config.CacheDir == "" {
		config.CacheDir = filepath.Join(testDir, "cache-"+string(config.Isolation))
	}
	e, err := New(context.Background(), config)
	require.NoError(tb, err)
	require.Equal(tb, config.Isolation, e.Isolation())
	tb.Cleanup(func() { require.NoError(tb, e.Close(context.Background())) })
	return e
}

// inBoth runs a test for both kinds of isolation.
func inBoth(t *testing.T, config Config, test func(t *testing.T, e *Executor)) {
	t.Helper()
	for _, isolation := range []Isolation{IsolationProcess, IsolationInProcess} {
		t.Run(string(isolation), func(t *testing.T) {
			t.Parallel()
			config := config
			config.Isolation = isolation
			test(t, newExecutor(t, config))
		})
	}
}

// skipSlowCompile leaves out what compiles a Go function where the compiler
// itself was built with the race detector: a short run without it has them.
func skipSlowCompile(t *testing.T) {
	t.Helper()
	if testing.Short() && !long && raceDetector {
		t.Skip("compiles a Go function; not with -short and -race")
	}
}

// of makes an invocation of a module under a name.
func of(name string, module []byte) Invocation {
	return Invocation{CID: name, Module: func(context.Context) ([]byte, error) { return module, nil }}
}

// stillWorks runs a good module.
func stillWorks(t *testing.T, e *Executor) {
	t.Helper()
	out, err := e.Run(context.Background(), of("good", printing(1, 1, "good")))
	require.NoError(t, err)
	require.Equal(t, "good", string(out.Stdout))
}

// requireKind asserts the kind of a failure.
func requireKind(t *testing.T, kind string, err error) *Error {
	t.Helper()
	var failure *Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, kind, failure.Kind, "%v", err)
	require.Equal(t, kind, failure.FailureKind())
	require.NotEmpty(t, failure.Message)
	return failure
}

// shortly is a time limit for what would not end by itself.
const shortly = 100 * time.Millisecond
