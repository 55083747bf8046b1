package careless

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How long a walk lasts: so many steps, or until a time has passed.
const (
	shortSteps = 30
	longWalk   = 5 * time.Minute
)

// TestCareless walks over all commands, and then looks for what was promised.
func TestCareless(t *testing.T) {
	t.Parallel()
	seed, lasts := uint64(1), time.Duration(0)
	if os.Getenv("FUTURA_LONG") == "1" {
		seed, lasts = rand.Uint64(), longWalk
	}
	if text := os.Getenv("FUTURA_CARELESS"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err, "FUTURA_CARELESS is a duration such as 1h")
		seed = rand.Uint64()
	}
	if given, err := strconv.ParseUint(os.Getenv("FUTURA_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("FUTURA_SEED=%d", seed)
	w := newWalk(t, seed)
	w.checkCoverage()
	w.putAll()
	began := time.Now()
	for w.steps = 0; w.steps < shortSteps || time.Since(began) < lasts; w.steps++ {
		if w.steps == shortSteps && lasts == 0 {
			break
		}
		w.step()
	}
	w.finish()
	if testing.Verbose() {
		t.Log(strings.Join(w.history, "\n"))
	}
	t.Logf("%d steps, %d commands, %d futures and %d batches promised, %d slow, ends: %v", w.steps, w.commands,
		w.promised(), w.promisedBatches(), w.slow, w.codes)
}

// build compiles the command.
func build(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("FUTURA_BINARY"); bin != "" {
		return bin
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	bin := filepath.Join(t.TempDir(), "futura")
	cmd := exec.Command("go", "build", "-tags", "pebblegozstd", "-ldflags=-s -w", "-o", bin, "./cmd/futura")
	cmd.Dir = root
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return bin
}
