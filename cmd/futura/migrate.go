package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/internal/console"
)

// copied is what migrate, backup and restore print.
type copied struct {
	transfer.Report
	From    string `json:"from"`
	To      string `json:"to"`
	Elapsed int64  `json:"elapsed_ms"`
	// Consistent says how the source was read, for people.
	Consistent string `json:"-"`
}

const (
	readOnce  = "read at one version"
	readTwice = "read twice, the same both times"
)

func (a *app) migrateCommand() *cobra.Command {
	var from, to string
	var rows []string
	var o transfer.Options
	cmd := &cobra.Command{
		Use:   "migrate --from STORE --to STORE",
		Short: "Copy a whole cluster to another store",
		Long: "migrate copies a cluster, compares the copy with the source, and checks its invariants; only then can the " +
			"copy be opened. The source stays as it is. Stop the cluster's processes first: migrate refuses a cluster " +
			"whose workers or clients run, and a source that changes meanwhile. The target must not hold this cluster " +
			"yet; what an interrupted migrate or restore left is started over. Of the rows that your programs write beside " +
			"their futures, those are copied whose prefix --rows names; none is overwritten.",
		Example: "  futura migrate --from embedded:./.futura --to fdb:fdb.cluster\n" +
			"  futura migrate --from fdb:fdb.cluster --to embedded:./copy --cluster reports --json",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkStores(from, to); err != nil {
				return err
			}
			if o.Rows, err = rowPrefixes(rows); err != nil {
				return err
			}
			return a.migrate(cmd.Context(), from, to, o)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the store to copy from")
	cmd.Flags().StringVar(&to, "to", "", "the store to copy to")
	cmd.Flags().BoolVar(&o.IgnoreLive, "live", false,
		"copy even while workers or clients run; what they do afterwards is not in the copy")
	rowsFlag(cmd, &rows)
	return cmd
}

func checkStores(from, to string) error {
	switch {
	case from == "" || to == "":
		return usageError{errors.New("migrate needs --from and --to")}
	case from == to || sameDirectory(from, to):
		return usageError{fmt.Errorf("--from and --to are the same store: %s, %s", from, to)}
	case strings.HasPrefix(from, "memory:") || strings.HasPrefix(to, "memory:"):
		return usageError{errors.New("a store in memory ends with this process: name another")}
	}
	return nil
}

// sameDirectory reports whether two names of embedded stores lead to one directory.
func sameDirectory(from, to string) bool {
	one, embedded := embeddedDir(from)
	other, also := embeddedDir(to)
	if !embedded || !also {
		return false
	}
	there, err := os.Stat(one)
	if err != nil {
		return filepath.Clean(one) == filepath.Clean(other)
	}
	same, err := os.Stat(other)
	return err == nil && os.SameFile(there, same)
}

func (a *app) migrate(ctx context.Context, from, to string, o transfer.Options) (err error) {
	if err := storeExists(from); err != nil {
		return err
	}
	source, err := a.openNamed(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := a.openNamed(ctx, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	began := time.Now()
	o.Progress = a.stages()
	report, err := transfer.Migrate(ctx, source, target, a.cluster, o)
	if err != nil {
		return copyMistake(err)
	}
	a.warnOfHaste(ctx, target)
	return a.printCopied(copied{report, from, to, time.Since(began).Milliseconds(), readTwice})
}

// leastDeadAfter is the shortest dead-after time that FoundationDB's recoveries
// leave workers alive in.
const leastDeadAfter = 10 * time.Second

// warnOfHaste tells that a cluster that dev made takes workers for dead too soon
// for a store of several machines.
func (a *app) warnOfHaste(ctx context.Context, target kv.Database) {
	if kv.TraitsOf(target).Exclusive {
		return
	}
	c, err := fdbmodel.Open(ctx, target, a.cluster, fdbmodel.Options{Existing: true})
	if err != nil || c.Config().DeadAfter >= leastDeadAfter {
		return
	}
	fmt.Fprintf(a.err, "warning: a worker counts as dead after %v here, and FoundationDB may stand still for longer: see "+
		"futura cluster set --help\n", c.Config().DeadAfter)
}

// openNamed opens a store that is not the one of --store.
func (a *app) openNamed(ctx context.Context, name string) (kv.Database, error) {
	return kvopen.Open(ctx, name, kvopen.Options{Exclusive: true, GiveUpAfter: a.giveUpAfter, InUseWait: inUseWait})
}

// copyMistake marks what the caller can cure by calling otherwise.
func copyMistake(err error) error {
	if errors.Is(err, transfer.ErrNotEmpty) || errors.Is(err, transfer.ErrBadRows) || errors.Is(err, fdbmodel.ErrLive) {
		return usageError{err}
	}
	return err
}

// stages shows a bar for each stage of a copy, on a terminal only.
func (a *app) stages() func(stage string, done, all int64) {
	bars := map[string]func(done, all int){}
	return func(stage string, done, all int64) {
		if bars[stage] == nil {
			bars[stage] = console.Progress(a.err, stage)
		}
		if bar := bars[stage]; bar != nil {
			bar(int(done), int(all))
		}
	}
}

func (a *app) printCopied(c copied) error {
	rows := pairs{
		{"cluster", c.Cluster}, {"from", c.From}, {"to", c.To}, {"futures", fmt.Sprint(c.Futures)},
		{"keys", fmt.Sprint(c.Keys)}, {"bytes", fmt.Sprint(c.Bytes)}, {"sha256", c.SHA256},
	}
	rows.add(c.Consistent != "", "consistent", "%s", c.Consistent)
	rows.add(c.Rows > 0, "rows", "%d of the keys belong to no cluster", c.Rows)
	rows.add(c.Others, "left out", "rows that belong to no cluster, such as those of your programs")
	rows.add(true, "took", "%v", time.Duration(c.Elapsed)*time.Millisecond)
	return a.show(&c, rows)
}
