//go:build fdb

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/futura-run/futura/internal/fdbtest"
)

// startFDB starts a server, and returns its store and version.
func startFDB(ctx context.Context) (store, version string, stop func() error, err error) {
	s, err := fdbtest.Start(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		return "", "", nil, fmt.Errorf("%w: %w", errNoFDB, err)
	}
	if err != nil {
		return "", "", nil, err
	}
	out, err := exec.CommandContext(ctx, "fdbserver", "--version").Output()
	if err != nil {
		return "", "", nil, errors.Join(err, s.Stop())
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return "fdb:" + s.Path(), strings.TrimPrefix(line, "FoundationDB "), s.Stop, nil
}
