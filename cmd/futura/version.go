package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/workers/wasm"
)

// versionView is what version prints.
type versionView struct {
	Version string `json:"version"`
	// Walls are what the kernel puts around the processes of functions, and Missing
	// says why others are not there.
	Walls   []string `json:"walls"`
	Missing []string `json:"missing_walls"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, and what walls WASM functions run behind here",
		Long: "version prints the version of this program, and what the kernel of this machine puts around the processes " +
			"of WASM functions, beside the engine: no_new_privs, rlimits, landlock, seccomp.",
		Example: "  futura version", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			standing, missing, err := walls(cmd.Context())
			view := versionView{version, append([]string{}, standing...), append([]string{}, missing...)}
			return errors.Join(err, a.show(&view, [][]string{
				{"futura " + version}, {"functions", describeWalls(standing, missing)},
			}))
		},
	}
}

// walls starts a process for functions to find out.
func walls(ctx context.Context) (standing, missing []string, err error) {
	executor, err := wasm.New(ctx, wasm.Config{PoolSize: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	standing, missing = executor.Walls()
	return standing, missing, executor.Close(context.WithoutCancel(ctx))
}

// describeWalls is for people.
func describeWalls(standing, missing []string) string {
	text := "behind no walls but the engine's"
	if len(standing) > 0 {
		text = "behind " + strings.Join(standing, ", ")
	}
	parts := []string{text}
	for _, reason := range missing {
		parts = append(parts, "without "+reason)
	}
	return strings.Join(parts, "; ")
}
