package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/transfer/archive"
	"github.com/futura-run/futura/internal/clock"
)

// BackupFile is the file that Backup writes. Backup starts it over if
// necessary.
type BackupFile interface {
	io.Writer
	io.Seeker
	Truncate(size int64) error
}

// Backup writes a whole cluster into a file, in the format of package archive.
// It copies the same keys as Migrate, and the same rows.
//
// A store keeps a version readable for five seconds. A cluster that can be read
// within that time is written as it was at one version, even if it is in use, and so is one of any size in a store
// that has snapshots (kv.Traits): embedded ones do, also while another process has them open. Elsewhere
// each page of a larger cluster is read at a different version, so it is read
// twice, and Backup returns ErrChanged if the two differ. So a large cluster
// must be quiet there; otherwise it is unharmed, but the file is invalid.
//
// It returns ErrNotFound if the cluster does not exist, ErrIncomplete if it is
// itself an unfinished copy, ErrBadRows, and ErrBadRecord for keys that this version
// does not know.
func Backup(ctx context.Context, db kv.Database, cluster string, file BackupFile, o Options) (Report, error) {
	report := Report{Cluster: cluster}
	rows, err := rowsUnder(o.Rows)
	if err != nil {
		return report, err
	}
	c, err := openExisting(ctx, db, cluster, o.Model)
	if err != nil {
		return report, err
	}
	all, err := futuresCount(ctx, c)
	if err != nil {
		return report, err
	}
	source := newCopySource(c, rows)
	others, err := source.hasOthers(ctx)
	if err != nil {
		return report, err
	}
	head := archive.Head{
		Cluster: cluster, Futures: all, CreatedAt: layout.Millis(c.Clock().Now()), Rows: namesOf(o.Rows),
	}
	report, err = source.archiveAtOnce(ctx, file, head, o.reporter("copied", all))
	if report.Others = others; err == nil {
		return report, nil
	}
	if !kv.Retryable(err) || ctx.Err() != nil {
		return report, fmt.Errorf("back up cluster %q: %w", cluster, err)
	}
	once := err
	if err := rewind(file); err != nil {
		return report, err
	}
	if open := kv.TraitsOf(db).Snapshot; open != nil {
		taken, err := open(ctx)
		if err == nil {
			report, err = source.backUpSnapshot(ctx, taken, file, head, o)
			report.Others = others
			return report, err
		}
		if once = fmt.Errorf("no snapshot: %w", err); ctx.Err() != nil {
			return report, once
		}
	}
	report, err = source.backUpTwice(ctx, file, head, o)
	if errors.Is(err, ErrChanged) && !errors.Is(once, kv.ErrTooOld) {
		err = fmt.Errorf("cluster %q: %w, and could not be read at one version (%v): back it up again", cluster,
			ErrChanged, once)
	}
	report.Others = others
	return report, err
}

// rewind empties a file.
func rewind(file BackupFile) error {
	_, err := file.Seek(0, io.SeekStart)
	return errors.Join(err, file.Truncate(0))
}

// backUpSnapshot reads everything from a snapshot of the store, and closes that.
func (s *copySource) backUpSnapshot(ctx context.Context, db kv.Database, file BackupFile, head archive.Head, o Options,
) (report Report, err error) {
	defer func() { err = errors.Join(err, db.Close()) }()
	report.Cluster = head.Cluster
	c, err := openExisting(ctx, db, head.Cluster, o.Model)
	if err != nil {
		return report, err
	}
	if head.Futures, err = futuresCount(ctx, c); err != nil {
		return report, err
	}
	report, err = newCopySource(c, s.rows).archiveAtOnce(ctx, file, head, o.reporter("copied", head.Futures))
	if err != nil {
		err = fmt.Errorf("back up cluster %q: %w", head.Cluster, err)
	}
	return report, err
}

// archiveAtOnce reads everything at one version.
func (s *copySource) archiveAtOnce(ctx context.Context, w io.Writer, head archive.Head, progress func(int64),
) (Report, error) {
	report := Report{Cluster: head.Cluster}
	release, err := s.pin(ctx)
	if err != nil {
		return report, err
	}
	defer release()
	written, err := s.archive(ctx, w, head, progress)
	if err != nil {
		return report, err
	}
	report = written.report(head.Cluster)
	report.OneVersion = true
	return report, nil
}

// backUpTwice reads each page at a version of its own, and then everything once
// more.
func (s *copySource) backUpTwice(ctx context.Context, file BackupFile, head archive.Head, o Options,
) (Report, error) {
	report := Report{Cluster: head.Cluster}
	s.version = kv.NoVersion
	written, err := s.archive(ctx, file, head, o.reporter("copied", head.Futures))
	if err != nil {
		return report, fmt.Errorf("back up cluster %q: %w", head.Cluster, err)
	}
	again, err := s.tally(ctx, o.reporter("verified", head.Futures))
	if err != nil {
		return report, fmt.Errorf("read cluster %q again: %w", head.Cluster, err)
	}
	if again.checksum() != written.checksum() {
		return report, fmt.Errorf("cluster %q: %w, and is too large to be read within five seconds: "+
			"stop its workers and clients while it is backed up", head.Cluster, ErrChanged)
	}
	return written.report(head.Cluster), nil
}

// archive writes everything into a file.
func (s *copySource) archive(ctx context.Context, w io.Writer, head archive.Head, progress func(int64),
) (*tally, error) {
	file, err := archive.NewWriter(w, head)
	if err != nil {
		return nil, err
	}
	written := newTally()
	err = s.each(ctx, func(item movedItem) error {
		written.add(item)
		progress(written.futures)
		return file.Add(item.key, item.value)
	})
	if err != nil {
		return nil, err
	}
	_, err = file.Close()
	return written, err
}

// Restore writes a cluster from a file that Backup made, verifies it, and opens
// it to others. The cluster keeps its name unless cluster gives another;
// idempotency keys then map to different ids than before. Until everything is
// written and verified, opening it returns ErrIncomplete: a file that turns out
// to be damaged leaves it so. archive.Verify finds damage before anything is
// written.
//
// Rows of the file that belong to no cluster are written too, unless o says that they are left out. They
// overwrite none, as those of Migrate.
//
// It returns the errors of package archive, ErrNotEmpty, ErrBadCopy,
// ErrCopyReplaced, and ErrBadRecord for keys that this version does not know.
func Restore(ctx context.Context, db kv.Database, cluster string, r io.Reader, o Options) (Report, error) {
	file, err := archive.NewReader(r)
	if err != nil {
		return Report{Cluster: cluster}, err
	}
	if cluster == "" {
		cluster = file.Head().Cluster
	}
	report := Report{Cluster: cluster}
	if err := layout.CheckClusterName(cluster); err != nil {
		return report, err
	}
	var clk clock.Clock = clock.Real{}
	if o.Model.Clock != nil {
		clk = o.Model.Clock
	}
	target := newCopyTarget(db, layout.NewKeyspace(cluster), clk, o.Model)
	prefixes, err := prefixesOf(file.Head().Rows)
	if err == nil {
		target.rows, err = rowsUnder(prefixes)
	}
	if err != nil {
		return report, fmt.Errorf("restore cluster %q: %w: %w", cluster, layout.ErrBadRecord, err)
	}
	leftOut := o.WithoutRows && len(target.rows) > 0
	if o.WithoutRows {
		target.rows = nil
	}
	if err := target.begin(ctx); err != nil {
		return report, fmt.Errorf("cluster %q: %w", cluster, err)
	}
	copied, err := target.unpack(ctx, file, o.WithoutRows, o.reporter("copied", file.Head().Futures))
	if err != nil {
		return report, fmt.Errorf("restore cluster %q: %w", cluster, err)
	}
	if err := target.verify(ctx, copied, o.Model, o.reporter("verified", copied.futures)); err != nil {
		return report, fmt.Errorf("verify cluster %q: %w", cluster, err)
	}
	report = copied.report(cluster)
	report.Others = leftOut
	return report, target.finish(ctx)
}

// unpack writes everything that a file holds, its rows too unless they are left out.
func (t *copyTarget) unpack(ctx context.Context, file *archive.Reader, withoutRows bool, progress func(int64),
) (*tally, error) {
	copied := newTally()
	for {
		key, value, err := file.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		item := movedItem{key: slices.Clone(key), value: slices.Clone(value)}
		if len(key) > 0 && key[0] == rowMark {
			if withoutRows {
				continue
			}
			if !holdsRow(t.rows, key[1:]) {
				return nil, fmt.Errorf("%w: %s is not a row of this backup", layout.ErrBadRecord, layout.EscapeKey(key[1:]))
			}
		} else if item.kind, err = t.kindOf(key, value); err != nil {
			return nil, err
		}
		copied.add(item)
		progress(copied.futures)
		if err := t.add(ctx, item); err != nil {
			return nil, err
		}
	}
	if t.keys.Shards == 0 {
		return nil, fmt.Errorf("%w: the backup lacks the cluster's settings", layout.ErrBadRecord)
	}
	return copied, t.flush(ctx)
}

// kindOf returns the kind of a key of a cluster in a backup, and takes the cluster's number of shards from
// its settings.
func (t *copyTarget) kindOf(key, value []byte) (*layout.KeyKind, error) {
	whole := append(slices.Clone(t.keys.Prefix), key...)
	kind := keyspace.Table().Parse(whole).Kind
	if kind == nil || kind.Moves == layout.LeftOut {
		return nil, fmt.Errorf("%s: %w: not a key of a backup", layout.EscapeKey(whole), layout.ErrBadRecord)
	}
	if kind.Subspace == layout.SubConfig {
		var config layout.Config
		if err := layout.Decode(whole, value, &config); err != nil {
			return nil, err
		}
		if err := config.Validate(); err != nil {
			return nil, err
		}
		t.keys.Shards = config.Shards
	}
	return kind, nil
}
