package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Conditions of copying a cluster.
var (
	// ErrNotEmpty is returned when the target of a copy already contains a
	// cluster. Nothing was written.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrChanged is returned when a cluster changed while it was copied, so
	// that the copy is inconsistent. The copy is invalid.
	ErrChanged = errors.New("the cluster changed while it was copied")
	// ErrCopyReplaced is returned to a copy when another one into the same
	// cluster has begun.
	ErrCopyReplaced = errors.New("another copy into this cluster has begun")
	// ErrBadCopy is returned when a copy differs from its source, or violates
	// an invariant. The copy is invalid.
	ErrBadCopy = errors.New("the copy is not sound")
)

// Options of Migrate, Backup and Restore. The zero value is ready to use.
type Options struct {
	// IgnoreLive copies a cluster even if its workers or sessions are alive.
	// Changes that they make during the copy end it with ErrChanged; later
	// changes are not in it. Defaults to false.
	IgnoreLive bool
	// Rows has Migrate and Backup copy rows that belong to no cluster, such as those that programs
	// write beside their futures: those whose keys begin with one of these prefixes, all of
	// them for an empty one. ErrBadRows is returned for a prefix of clusters, and of keys from \xff on.
	// Defaults to none.
	Rows [][]byte
	// WithoutRows has Restore leave out such rows of a file. Defaults to false.
	WithoutRows bool
	// Progress receives the number of futures that a stage, "copied" or
	// "verified", has processed, and the approximate total. It is called for
	// each key, so it should be quick. Defaults to none.
	Progress func(stage string, done, all int64)
	// Model are the options of the cluster's model. Config is not used.
	// Defaults to those of Open.
	Model fdbmodel.Options
}

// Report describes a copy.
type Report struct {
	Cluster string `json:"cluster"`
	Futures int64  `json:"futures"`
	// Keys and Bytes count the copied keys and their bytes, and Rows those keys that belong to no
	// cluster. Those of workers, sessions and mailboxes are not among them.
	Keys  int64 `json:"keys"`
	Bytes int64 `json:"bytes"`
	Rows  int64 `json:"rows"`
	// SHA256 is over all keys and values that were copied, without the
	// versionstamps of lists of finished futures. It is the same for the same
	// cluster in every store.
	SHA256 string `json:"sha256"`
	// OneVersion reports whether Backup read everything at one version.
	// Otherwise it read the cluster twice, as Migrate always does, and both
	// reads agreed.
	OneVersion bool `json:"one_version"`
	// Others reports whether the source has keys that belong to no cluster and that Options.Rows does not name: they
	// are not in the copy. Restore sets it if it was told to leave out rows of the file.
	Others bool `json:"others"`
}

// movedItem is a key that is copied, without the cluster's prefix, or with that of rows.
type movedItem struct {
	kind       *layout.KeyKind
	key, value []byte
}

// tally sums up the copied keys.
type tally struct {
	sum                        hash.Hash
	futures, keys, bytes, rows int64
}

func newTally() *tally { return &tally{sum: sha256.New()} }

func (t *tally) add(item movedItem) {
	value := sameInCopies(item)
	t.keys++
	t.bytes += int64(len(item.key) + len(value))
	switch {
	case item.isRow():
		t.rows++
	case item.kind.Name == layout.RowSpec:
		t.futures++
	}
	key := item.key
	if item.isRestamped() {
		key = key[:len(key)-layout.StampLength]
	}
	var lengths [2 * binary.MaxVarintLen64]byte
	t.sum.Write(binary.AppendUvarint(lengths[:0], uint64(len(key))))
	t.sum.Write(key)
	t.sum.Write(binary.AppendUvarint(lengths[:0], uint64(len(value))))
	t.sum.Write(value)
}

// sameInCopies returns the value of an item as all copies of a cluster have it.
func sameInCopies(item movedItem) []byte {
	var config layout.Config
	if item.isRow() || item.kind.Name != layout.KeyConfig || layout.Decode(item.key, item.value, &config) != nil {
		return item.value
	}
	config.Incarnation = 0
	return layout.Encode(&config)
}

func (t *tally) checksum() string { return hex.EncodeToString(t.sum.Sum(nil)) }

func (t *tally) report(cluster string) Report {
	return Report{Cluster: cluster, Futures: t.futures, Keys: t.keys, Bytes: t.bytes, Rows: t.rows, SHA256: t.checksum()}
}

// reporter reports progress, one stage at a time.
func (o *Options) reporter(stage string, all int64) func(done int64) {
	if o.Progress == nil {
		return func(int64) {}
	}
	return func(done int64) { o.Progress(stage, done, max(all, done)) }
}

// copySource reads the keys of a cluster that are copied.
type copySource struct {
	db   kv.Database
	keys layout.Keyspace
	rows []kv.Range // outside of clusters, that are copied too
	// version is the version of all reads, NoVersion to read each page at its
	// own.
	version kv.Version
	sleep   func(context.Context, time.Duration) error
}

func newCopySource(c *fdbmodel.Cluster, rows []kv.Range) *copySource {
	return &copySource{
		db: c.Database(), keys: c.Keys(), rows: rows, version: kv.NoVersion, sleep: c.RetryPolicy(kv.Options{}).Sleep,
	}
}

// each calls fn with everything that is copied, in the order of the keys, rows last. It
// returns ErrBadRecord for a key of an unknown kind.
func (s *copySource) each(ctx context.Context, fn func(movedItem) error) error {
	for _, span := range keyspace.Table().Spans(s.keys) {
		if span.Subspace == layout.SubMailbox {
			continue // mailboxes can be long and are not copied
		}
		err := s.eachKey(ctx, span.Range, kv.RangeOptions{Limit: span.Page}, func(item kv.KeyValue) error {
			kind := keyspace.Table().Parse(item.Key).Kind
			if kind == nil {
				return fmt.Errorf("%s: %w: %s", tuple.String(item.Key), layout.ErrBadRecord, layout.ProblemUnknown)
			}
			if kind.Moves == layout.LeftOut {
				return nil
			}
			return fn(movedItem{kind, item.Key[len(s.keys.Prefix):], item.Value})
		})
		if err != nil {
			return err
		}
	}
	for _, r := range s.rows {
		err := s.eachKey(ctx, r, kv.RangeOptions{Limit: rowPage, Bytes: rowPageBytes}, func(item kv.KeyValue) error {
			return fn(movedItem{nil, append([]byte{rowMark}, item.Key...), item.Value})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachKey calls fn with the keys of a range, in their order. They are read in pages.
func (s *copySource) eachKey(ctx context.Context, r kv.Range, limits kv.RangeOptions, fn func(kv.KeyValue) error,
) error {
	for !r.Empty() {
		page, err := s.page(ctx, r, limits)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := fn(item); err != nil {
				return err
			}
		}
		if !page.More {
			break
		}
		r.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
	return nil
}

func (s *copySource) page(ctx context.Context, r kv.Range, limits kv.RangeOptions) (page kv.Page, err error) {
	options := kv.Options{Tag: "futura-copy"}
	if s.version != kv.NoVersion {
		tx := s.db.Begin(options)
		defer tx.Cancel()
		tx.SetReadVersion(s.version)
		return tx.Snapshot().GetRange(r, limits).Wait(ctx)
	}
	_, err = kv.Transact(ctx, s.db, kv.Retry{Options: options, Sleep: s.sleep}, func(tx kv.Attempt) error {
		var err error
		page, err = tx.Snapshot().GetRange(r, limits).Wait(ctx)
		return err
	})
	return page, err
}

// pin makes all reads use the store's present version, until the returned
// function is called.
func (s *copySource) pin(ctx context.Context) (release func(), err error) {
	tx := s.db.Begin(kv.Options{Tag: "futura-copy"})
	if s.version, err = tx.ReadVersion(ctx); err != nil {
		tx.Cancel()
		return nil, err
	}
	return tx.Cancel, nil
}

// tally reads everything and sums it up.
func (s *copySource) tally(ctx context.Context, progress func(done int64)) (*tally, error) {
	t := newTally()
	err := s.each(ctx, func(item movedItem) error {
		before := t.futures
		if t.add(item); t.futures != before {
			progress(t.futures)
		}
		return nil
	})
	return t, err
}
