package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/fdbmodel/transfer/archive"
)

func (a *app) backupCommand() *cobra.Command {
	var force bool
	var rows []string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a whole cluster to a file",
		Long: "backup writes futures, results, modules, counters and settings to a file with checksums, as they were at " +
			"one moment. The cluster may be in use, whatever its size, if its store is an embedded one in a directory, or if " +
			"it can be read within five seconds. A larger one on another store must be quiet: it is read twice, and a change " +
			"in between is an error. The file appears only once it is complete. Of the " +
			"rows that your programs write beside their futures, those are in it whose prefix --rows names.",
		Example: "  futura backup monday.futura\n  futura backup monday.futura --store fdb:fdb.cluster --cluster reports\n" +
			"  futura backup monday.futura --rows app/ --rows '\\x02orders\\x00'",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := transfer.Options{Progress: a.stages()}
			var err error
			if o.Rows, err = rowPrefixes(rows); err != nil {
				return err
			}
			return a.backup(cmd.Context(), args[0], force, o)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it exists")
	rowsFlag(cmd, &rows)
	return cmd
}

// rowsFlag adds the flag that names the rows of programs which a copy has.
func rowsFlag(cmd *cobra.Command, rows *[]string) {
	cmd.Flags().StringArrayVar(rows, "rows", nil, "also copy rows that belong to no cluster and whose keys begin with "+
		"this, as fdbcli prints keys; '' for all, and several times for several")
}

func rowPrefixes(flags []string) (prefixes [][]byte, err error) {
	for _, flag := range flags {
		prefix, err := layout.UnescapeKey(flag)
		if err != nil {
			return nil, usageError{fmt.Errorf("--rows: %w", err)}
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

func (a *app) backup(ctx context.Context, name string, force bool, o transfer.Options) (err error) {
	if _, err := os.Lstat(name); err == nil && !force {
		return usageError{fmt.Errorf("%s exists: name another file, or use --force", name)}
	}
	if found, err := os.Stat(name); err == nil && !found.Mode().IsRegular() {
		return usageError{fmt.Errorf("%s is no file that a backup could replace: name another", name)}
	}
	if err := storeExists(a.store); err != nil {
		return err
	}
	db, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	file, err := createPart(name)
	if err != nil {
		return usageError{err}
	}
	// Nothing is there to be removed once the file has its name.
	defer os.Remove(file.Name())
	began := time.Now()
	report, err := transfer.Backup(ctx, db, a.cluster, file, o)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(file.Name(), name) // while it is locked
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return copyMistake(err)
	}
	if err := syncDirectory(filepath.Dir(name)); err != nil {
		return err
	}
	how := readOnce
	if !report.OneVersion {
		how = readTwice
	}
	return a.printCopied(copied{report, a.store, name, time.Since(began).Milliseconds(), how})
}

// syncDirectory makes the name of a file durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Not every system can sync a directory.
	_ = d.Sync()
	return d.Close()
}

func (a *app) restoreCommand() *cobra.Command {
	var o transfer.Options
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Write a cluster from a backup into a store",
		Long: "restore reads the whole file first, and writes nothing if the file is damaged. It then writes the cluster, " +
			"compares it with the file and checks its invariants; only then can it be opened. The cluster keeps its " +
			"name, or gets that of --cluster (FUTURA_CLUSTER); under another name, idempotency keys stand for other futures " +
			"than before. " +
			"The store must not hold this cluster yet; what an interrupted restore or migrate left is started over. Rows of " +
			"the backup that belong to no cluster are written too, and overwrite none; those that an interrupted restore has " +
			"written stay (docs/operating/backup.md).",
		Example: "  futura restore monday.futura --store embedded:./restored\n" +
			"  futura restore monday.futura --cluster rehearsal --store fdb:fdb.cluster",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster := ""
			if isSet(cmd.Flags(), "cluster") {
				cluster = a.cluster
			}
			o.Progress = a.stages()
			return a.restore(cmd.Context(), args[0], cluster, o)
		},
	}
	cmd.Flags().BoolVar(&o.WithoutRows, "without-rows", false, "leave out rows of the backup that belong to no cluster")
	return cmd
}

func (a *app) restore(ctx context.Context, name, cluster string, o transfer.Options) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return usageError{err}
	}
	defer file.Close()
	head, _, err := archive.Verify(file)
	if err != nil {
		return fmt.Errorf("%s: %w: nothing was written", name, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if cluster != "" && cluster != head.Cluster {
		fmt.Fprintf(a.err, "futura: the backup of cluster %s is restored as %s, where idempotency keys stand for other "+
			"futures\n", head.Cluster, cluster)
	}
	db, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	began := time.Now()
	report, err := transfer.Restore(ctx, db, cluster, file, o)
	if err != nil {
		return copyMistake(err)
	}
	return a.printCopied(copied{report, name, a.store, time.Since(began).Milliseconds(), ""})
}
