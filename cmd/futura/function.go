package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/workers/wasm"
)

func (a *app) functionCommand() *cobra.Command {
	return group(&cobra.Command{Use: "function", Short: "Store, name, list and remove WASM functions"},
		a.functionPutCommand(), a.onCluster(&cobra.Command{
			Use: "list", Short: "List the stored WASM modules", Example: "  futura function list",
		}, a.listFunctions), a.functionAliasCommand(), a.functionRemoveCommand())
}

func (a *app) functionPutCommand() *cobra.Command {
	var alias string
	cmd := &cobra.Command{
		Use: "put FILE", Short: "Store a WASM module under its content id",
		Long: "put reads a file, or standard input for -, checks that the module can run (WASI preview 1, without files or " +
			"network), stores it, and prints the name of its function. With --alias, wasm:ALIAS names it from then on.",
		Example: "  futura function put count.wasm --alias count", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.putFunction(cmd.Context(), args[0], alias) },
	}
	cmd.Flags().StringVar(&alias, "alias", "", "another name for the module")
	return cmd
}

func (a *app) putFunction(ctx context.Context, file, alias string) (err error) {
	module, err := a.readInput(file, modules.MaxSize, ", which no module may have")
	if err != nil {
		return err
	}
	cid, err := modules.CID(module)
	if err != nil {
		return err
	}
	config := wasm.Config{PoolSize: 1}
	cacheModules(&config.CacheDir, slog.New(slog.DiscardHandler))
	executor, err := wasm.New(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, executor.Close(context.WithoutCancel(ctx))) }()
	if err := executor.Check(ctx, cid, module); err != nil {
		return usageError{fmt.Errorf("%s: %w", file, err)}
	}
	return a.openOrMake(ctx, func(c *futures.Client) error {
		stored, err := modules.Of(c.Cluster()).Put(ctx, module, alias)
		if err != nil {
			return err
		}
		return a.say(httpapi.FunctionOf(&stored), "wasm:"+stored.CID)
	})
}

func (a *app) listFunctions(ctx context.Context, c *futures.Client, _ []string) error {
	stored, err := modules.Of(c.Cluster()).List(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return showAll(a, "functions", stored, httpapi.FunctionOf, nil, func(*layout.Module) []string { return nil })
	}
	for _, m := range stored {
		names := strings.Join(m.Aliases, " ")
		if m.Retired != 0 {
			names += " (its removal has begun: remove it again, or store it again)"
		}
		fmt.Fprintf(a.out, "wasm:%s  %d bytes  %s\n", m.CID, m.Size, console.Printable(names))
	}
	return nil
}

func (a *app) functionAliasCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use: "alias ALIAS FUNCTION | ALIAS --rm", Short: "Name a stored module, or remove such a name",
		Long: "alias makes wasm:ALIAS stand for a stored module from then on: FUNCTION is a content id or another alias. " +
			"With --rm it removes the name and keeps the module. Futures that were submitted with the alias earlier keep " +
			"their module.",
		Example: "  futura function alias stable count\n  futura function alias stable --rm",
		Args:    usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remove == (len(args) == 2) {
				return usageError{errors.New("give an alias and a function, or an alias and --rm")}
			}
			alias := strings.TrimPrefix(args[0], wasmPrefix)
			return a.open(cmd.Context(), func(c *futures.Client) error {
				if remove {
					return a.done(modules.Of(c.Cluster()).RemoveAlias(cmd.Context(), alias), "removed", "alias", alias)
				}
				id, err := moduleOf(cmd.Context(), c, args[1])
				if err == nil {
					err = modules.Of(c.Cluster()).SetAlias(cmd.Context(), alias, id)
				}
				if err != nil {
					return err
				}
				return a.say(map[string]string{"alias": alias, "cid": id}, wasmPrefix+id)
			})
		},
	}
	cmd.Flags().BoolVar(&remove, "rm", false, "remove the alias")
	return cmd
}

// wasmPrefix begins the name of a module's function.
const wasmPrefix = "wasm:"

// moduleOf is the content id of a stored module that is named by its id, by an
// alias, or as a function.
func moduleOf(ctx context.Context, c *futures.Client, name string) (string, error) {
	function, err := c.Cluster().ResolveFunction(ctx, wasmPrefix+strings.TrimPrefix(name, wasmPrefix))
	if err != nil {
		return "", err
	}
	id, _, _ := layout.SplitWasm(function)
	return id, nil
}

func (a *app) functionRemoveCommand() *cobra.Command {
	var force bool
	cmd := a.onCluster(&cobra.Command{
		Use: "rm FUNCTION", Short: "Remove a stored module with all its aliases",
		Long: "rm removes the module that FUNCTION, a content id or an alias, stands for, and all its aliases. It refuses " +
			"while futures that are not over use the module; with --force these fail as unloadable once they are run, " +
			"unless the module is stored again. To remove an alias alone, use futura function alias --rm.",
		Example: "  futura function rm count\n  futura function rm wasm:count --force",
	}, func(ctx context.Context, c *futures.Client, args []string) error {
		id, err := moduleOf(ctx, c, args[0])
		if err != nil {
			return err
		}
		removed, err := modules.Of(c.Cluster()).Remove(ctx, id, force)
		if errors.Is(err, fdbmodel.ErrInUse) {
			return fmt.Errorf("%w: wait for them or cancel them, or use --force, which lets them fail", err)
		}
		if err != nil {
			return err
		}
		text := wasmPrefix + id
		if len(removed.Aliases) > 0 {
			text += " with the aliases " + strings.Join(removed.Aliases, " ")
		}
		return a.say(httpapi.FunctionOf(&removed), "removed", text)
	})
	cmd.Flags().BoolVar(&force, "force", false, "remove it even if futures that are not over use it")
	return cmd
}
