package transfer

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// Migrate copies a whole cluster into another store, verifies the copy, and
// opens it to others. The source is unchanged.
//
// Futures, results, modules, counters and settings are copied, and so are the
// claims of dead workers: the janitor of the new cluster takes them back.
// Workers, sessions and mailboxes are not: their processes create them again,
// under versions of the new store, which may be lower than those of the old
// one. Versionstamps inside records stay those of the old store. A client that
// awaits a future awaits it again in the new cluster, by its id.
//
// Of what belongs to no cluster, such as rows of programs, Options.Rows says what is copied; the report says whether
// there is more. Rows of the target are never overwritten: ErrNotEmpty says that it has any under these prefixes, or
// got them while an interrupted copy was started over. Those that a copy has written stay if it is interrupted: the
// same copy takes them for its own, and others are refused until somebody clears them.
//
// Everything is read once, and once more after it was written; if the source
// changed in between, Migrate returns ErrChanged. Until the copy is complete,
// opening the target returns ErrIncomplete. Another Migrate or Restore starts
// an interrupted copy over.
//
// It returns ErrNotFound if the cluster does not exist, ErrLive, ErrNotEmpty,
// ErrChanged, ErrBadCopy, ErrCopyReplaced, ErrBadRows, and ErrBadRecord for keys that this
// version does not know.
func Migrate(ctx context.Context, from, to kv.Database, cluster string, o Options) (Report, error) {
	report := Report{Cluster: cluster}
	rows, err := rowsUnder(o.Rows)
	if err != nil {
		return report, err
	}
	c, err := openExisting(ctx, from, cluster, o.Model)
	if err != nil {
		return report, err
	}
	if !o.IgnoreLive {
		if err := admin.RequireQuiet(ctx, c, joblog.Of(c).SignsOfLife); err != nil {
			return report, err
		}
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
	target := newCopyTarget(to, c.Keys(), c.Clock(), o.Model)
	target.rows = rows
	if err := target.begin(ctx); err != nil {
		return report, fmt.Errorf("cluster %q: %w", cluster, err)
	}
	progress, copied := o.reporter("copied", all), newTally()
	err = source.each(ctx, func(item movedItem) error {
		copied.add(item)
		progress(copied.futures)
		return target.add(ctx, item)
	})
	if err == nil {
		err = target.flush(ctx)
	}
	if err != nil {
		return report, fmt.Errorf("copy cluster %q: %w", cluster, err)
	}
	if err := target.verify(ctx, copied, o.Model, o.reporter("verified", all)); err != nil {
		return report, fmt.Errorf("verify cluster %q: %w", cluster, err)
	}
	again, err := source.tally(ctx, func(int64) {})
	if err != nil {
		return report, fmt.Errorf("read cluster %q again: %w", cluster, err)
	}
	if again.checksum() != copied.checksum() {
		return report, fmt.Errorf("cluster %q: %w: stop its workers and clients, and start again", cluster, ErrChanged)
	}
	report = copied.report(cluster)
	report.Others = others
	return report, target.finish(ctx)
}

func newCopyTarget(db kv.Database, keys layout.Keyspace, clk clock.Clock, model fdbmodel.Options) *copyTarget {
	t := &copyTarget{db: db, keys: keys, sleep: model.Sleep}
	t.record = layout.IncomingRecord{Writer: rand.Text(), At: layout.Millis(clk.Now())}
	return t
}

// openExisting is Open for a cluster that must exist; otherwise it returns
// ErrNotFound.
func openExisting(ctx context.Context, db kv.Database, cluster string, o fdbmodel.Options) (*fdbmodel.Cluster, error) {
	o.Config, o.Existing = layout.Config{}, true
	return fdbmodel.Open(ctx, db, cluster, o)
}

func futuresCount(ctx context.Context, c *fdbmodel.Cluster) (int64, error) {
	counts, err := c.Counts(ctx)
	all := int64(0)
	for _, n := range counts {
		all += n
	}
	return all, err
}
