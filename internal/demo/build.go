package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/futura-run/futura/examples"
)

// BuildCountlines builds the WASM function of the demo from the source in this binary, in a
// directory.
func BuildCountlines(ctx context.Context, dir string) ([]byte, error) {
	if err := os.CopyFS(filepath.Join(dir, "examples"), examples.Countlines()); err != nil {
		return nil, err
	}
	module := "module github.com/futura-run/futura\n\ngo 1.26\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600); err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "countlines.wasm")
	_, err := GoTool(ctx, dir, "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out,
		"./examples/wasm/countlines")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// GoTool runs the Go toolchain and returns what it prints. In a directory it builds for
// WebAssembly.
func GoTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if dir != "" {
		cmd.Env = append(cmd.Env, "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}
