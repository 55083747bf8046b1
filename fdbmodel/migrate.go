package fdbmodel

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
)

// Migrate copies a whole cluster into another store, verifies the copy, and
// opens it to others. The source stays as it is.
//
// Futures, results, modules, counters and settings go along, and so do the
// claims of workers that died: whoever janitors the new cluster takes them back.
// Workers, sessions and mailboxes don't: their processes make them anew, under
// versions of the new store, which may be lower than those of the old one.
// Versionstamps inside records stay those of the old store. Whoever awaits a
// future does so again in the new cluster, by its id, and finds it.
//
// Everything is read once, and once more after it was written; a source that
// changed in between is ErrChanged. Until the copy is whole, opening the target
// is ErrIncomplete. A copy that was cut off is started over by another Migrate
// or Restore.
//
// It returns ErrNotFound if there is no such cluster, ErrLive, ErrNotEmpty,
// ErrChanged, ErrBadCopy, ErrCopyReplaced, and ErrBadRecord for keys that this
// version does not know.
func Migrate(ctx context.Context, from, to kv.Database, cluster string, o CopyOptions) (CopyReport, error) {
	report := CopyReport{Cluster: cluster}
	c, err := openExisting(ctx, from, cluster, o.Model)
	if err != nil {
		return report, err
	}
	if !o.IgnoreLive {
		if err := c.requireQuiet(ctx); err != nil {
			return report, err
		}
	}
	all, err := c.futuresCount(ctx)
	if err != nil {
		return report, err
	}
	target := newCopyTarget(to, c.keys, c.clock, o.Model)
	if err := target.begin(ctx); err != nil {
		return report, fmt.Errorf("cluster %q: %w", cluster, err)
	}
	source := newCopySource(c)
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
	return copied.report(cluster), target.finish(ctx)
}

func newCopyTarget(db kv.Database, keys keyspace, clk clock.Clock, model Options) *copyTarget {
	t := &copyTarget{db: db, keys: keys, sleep: model.Sleep}
	t.record = incomingRecord{Writer: rand.Text(), At: millis(clk.Now())}
	return t
}

func clusterOf(k keyspace) string {
	rest := tuple.NewReader(k.prefix)
	rest.Text()
	return rest.Text()
}

// openExisting is Open for a cluster that must be there: it returns ErrNotFound.
func openExisting(ctx context.Context, db kv.Database, cluster string, o Options) (*Cluster, error) {
	o.Config, o.Existing = Config{}, true
	return Open(ctx, db, cluster, o)
}

func (c *Cluster) futuresCount(ctx context.Context) (int64, error) {
	counts, err := c.Counts(ctx)
	all := int64(0)
	for _, n := range counts {
		all += n
	}
	return all, err
}

// requireQuiet returns ErrLive if workers or sessions are alive: if what they
// write as a sign of life changes within the time after which they count as
// dead. It does not wait if there are none.
func (c *Cluster) requireQuiet(ctx context.Context) error {
	before, err := c.signsOfLife(ctx)
	if err != nil || len(before) == 0 {
		return err
	}
	timer := c.clock.At(c.clock.Now().Add(c.config.DeadAfter))
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := c.signsOfLife(ctx)
	if err != nil {
		return err
	}
	var living []string
	for name, sign := range after {
		if !bytes.Equal(before[name], sign) {
			living = append(living, name)
		}
	}
	if len(living) == 0 {
		return nil
	}
	slices.Sort(living)
	return fmt.Errorf("cluster %q: %w by %s: stop them first", c.name, ErrLive, nameSome(living))
}

func nameSome(names []string) string {
	const some = 5
	if len(names) > some {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:some], ", "), len(names)-some)
	}
	return strings.Join(names, ", ")
}

// signsOfLife returns what those write again and again who may be alive. Those
// of an earlier opening of a store that one process opens are not.
func (c *Cluster) signsOfLife(ctx context.Context) (map[string][]byte, error) {
	members, err := c.Workers(ctx)
	if err != nil {
		return nil, err
	}
	signs, opening := map[string][]byte{}, c.opening()
	for i := range members {
		if m := &members[i]; m.Alive && (opening == "" || m.Opening == opening) {
			signs["worker "+string(m.ID)] = m.Beat
		}
	}
	sessions, err := c.Sessions(ctx)
	for id, sign := range sessions {
		var record sessionRecord
		readable := sign != nil && decodeRecord(c.keys.session(id), sign, &record) == nil
		if readable && (opening == "" || record.Opening == opening) {
			signs["session "+string(id)] = sign
		}
	}
	return signs, err
}
