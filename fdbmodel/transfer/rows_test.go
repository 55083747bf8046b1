package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/fdbmodel/transfer/archive"
)

// someRows are rows of programs, before and behind those of clusters.
func someRows() map[string]string {
	return map[string]string{
		"\x00": "", "\x02futur": "before", "app/1": "one", "app/2": "two", "aq": "", "\xfe\xff\xff": "last",
	}
}

// everyRow is the prefix of all rows.
func everyRow() [][]byte { return [][]byte{{}} }

func putRows(t *testing.T, db kv.Database, rows map[string]string) {
	_, err := kv.Transact(context.Background(), db, kv.Retry{}, func(tx kv.Attempt) error {
		for key, value := range rows {
			tx.Set([]byte(key), []byte(value))
		}
		return nil
	})
	require.NoError(t, err)
}

// rowsIn returns what a store has outside of clusters.
func rowsIn(t *testing.T, db kv.Database) map[string]string {
	rows := map[string]string{}
	for _, item := range allOf(t, db) {
		if !layout.AllClusters().Contains(item.Key) {
			rows[string(item.Key)] = string(item.Value)
		}
	}
	return rows
}

// withRows is a population beside rows, and its backup.
func withRows(t *testing.T, prefixes ...string) (p *modeltest.Population, file *memoryFile, r transfer.Report) {
	p, file = modeltest.Populate(t), &memoryFile{}
	p.Leave(t)
	putRows(t, p.DB, someRows())
	o := transfer.Options{Model: fdbmodel.Options{Clock: p.C.Clock()}}
	for _, prefix := range prefixes {
		o.Rows = append(o.Rows, []byte(prefix))
	}
	r, err := transfer.Backup(context.Background(), p.DB, "check", file, o)
	require.NoError(t, err)
	return p, file, r
}

func restore(db kv.Database, cluster string, file *memoryFile, without bool) (transfer.Report, error) {
	return transfer.Restore(context.Background(), db, cluster, bytes.NewReader(file.Bytes()),
		transfer.Options{WithoutRows: without})
}

// TestRowsUnderPrefixesAreCopied: no more and no fewer, and the report says which are left.
func TestRowsUnderPrefixesAreCopied(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, of := range []struct {
		prefixes []string
		keys     []string
		others   bool
	}{
		{nil, nil, true},
		{[]string{"app/"}, []string{"app/1", "app/2"}, true},
		{[]string{"app/2", "app/", "a", "app/"}, []string{"app/1", "app/2", "aq"}, true},
		{[]string{"\x02", "\xfe\xff"}, []string{"\x02futur", "\xfe\xff\xff"}, true},
		{[]string{"none"}, nil, true},
		{[]string{""}, slices.Collect(maps.Keys(someRows())), false},
		{[]string{"\x00", "\x02futur", "a", "\xfe"}, slices.Collect(maps.Keys(someRows())), false},
	} {
		p, file, report := withRows(t, of.prefixes...)
		want := map[string]string{}
		for _, key := range of.keys {
			want[key] = someRows()[key]
		}
		require.Equal(t, of.others, report.Others, of.prefixes)
		require.EqualValues(t, len(of.keys), report.Rows, of.prefixes)

		db := modeltest.OpenMemory(t)
		restored, err := restore(db, "", file, false)
		require.NoError(t, err)
		require.Equal(t, want, rowsIn(t, db))
		require.Equal(t, [2]any{report.SHA256, report.Rows}, [2]any{restored.SHA256, restored.Rows})
		require.False(t, restored.Others)

		db = modeltest.OpenMemory(t)
		o := transfer.Options{Model: fdbmodel.Options{Clock: p.C.Clock()}}
		for _, prefix := range of.prefixes {
			o.Rows = append(o.Rows, []byte(prefix))
		}
		moved, err := transfer.Migrate(ctx, p.DB, db, "check", o)
		require.NoError(t, err)
		require.Equal(t, want, rowsIn(t, db))
		require.Equal(t, [2]any{report.SHA256, of.others}, [2]any{moved.SHA256, moved.Others})
	}
}

func TestRowsOfATargetAreKept(t *testing.T) {
	t.Parallel()
	_, file, _ := withRows(t, "app/")
	for name, there := range map[string]map[string]string{
		"another": {"app/0": "", "q": ""}, "the same": {"app/1": "one"}, "another value": {"app/1": "three"},
	} {
		db := modeltest.OpenMemory(t)
		putRows(t, db, there)
		_, err := restore(db, "", file, false)
		require.ErrorIs(t, err, transfer.ErrNotEmpty, name)
		require.Equal(t, there, rowsIn(t, db), name)
		require.Len(t, allOf(t, db), len(there), name)

		restored, err := restore(db, "", file, true)
		require.NoError(t, err, name)
		require.True(t, restored.Others)
		require.Zero(t, restored.Rows)
		require.Equal(t, there, rowsIn(t, db), name)
	}
}

// TestRowsThatComeDuringACopyAreKept: a program writes where an interrupted restore is started over.
func TestRowsThatComeDuringACopyAreKept(t *testing.T) {
	t.Parallel()
	_, file, _ := withRows(t, "app/")
	cut := errors.New("cut off")
	for name, row := range map[string]string{"another": "app/0", "changed": "app/1"} {
		db := modeltest.OpenMemory(t)
		_, err := restore(&hookedStore{Database: db, hook: func(n int) error {
			if n == 2 {
				return cut
			}
			return nil
		}}, "", file, false)
		require.ErrorIs(t, err, cut)
		putRows(t, db, map[string]string{row: "of a program"})
		_, err = restore(db, "", file, false)
		require.ErrorIs(t, err, transfer.ErrNotEmpty, name)
		require.Equal(t, "of a program", rowsIn(t, db)[row], name)
		_, err = fdbmodel.Open(context.Background(), db, "check", fdbmodel.Options{})
		require.ErrorIs(t, err, fdbmodel.ErrIncomplete)
		_, err = restore(db, "", file, true)
		require.NoError(t, err, name)
	}
}

// TestManyRows takes rows of more than one page, by number and by size.
func TestManyRows(t *testing.T) {
	t.Parallel()
	p, o, rows := modeltest.Populate(t), transfer.Options{Rows: everyRow(), IgnoreLive: true}, map[string]string{}
	for i := range 2100 {
		rows[fmt.Sprintf("app/%04d", i)] = fmt.Sprint(i)
	}
	for i := range 25 {
		rows[fmt.Sprintf("big/%02d", i)] = strings.Repeat(string(rune('a'+i)), 90_000)
	}
	putRows(t, p.DB, rows)
	db := modeltest.OpenMemory(t)
	report, err := transfer.Migrate(context.Background(), p.DB, db, "check", o)
	require.NoError(t, err)
	require.EqualValues(t, len(rows), report.Rows)
	require.Equal(t, rows, rowsIn(t, db))
}

// TestAChangeOfARowIsNoticed: only the key of a row changes once it was copied.
func TestAChangeOfARowIsNoticed(t *testing.T) {
	t.Parallel()
	p, changed := modeltest.Populate(t), false
	putRows(t, p.DB, someRows())
	_, err := transfer.Migrate(context.Background(), p.DB, modeltest.OpenMemory(t), "check", transfer.Options{
		Rows: everyRow(), IgnoreLive: true, Progress: func(stage string, _, _ int64) {
			if stage == "verified" && !changed {
				changed = true
				p.Write(t, func(tx kv.Tx) {
					tx.Clear([]byte("app/1"))
					tx.Set([]byte("app/3"), []byte("one"))
				})
			}
		},
	})
	require.ErrorIs(t, err, transfer.ErrChanged)
}

// TestRowsAreNotMixedWithOthers: an interrupted restore without rows is started over with them, where a program has
// its own.
func TestRowsAreNotMixedWithOthers(t *testing.T) {
	t.Parallel()
	_, file, _ := withRows(t, "app/")
	cut := errors.New("cut off")
	db, there := modeltest.OpenMemory(t), map[string]string{"app/0": "of a program"}
	putRows(t, db, there)
	_, err := restore(&hookedStore{Database: db, hook: func(n int) error {
		if n == 2 {
			return cut
		}
		return nil
	}}, "", file, true)
	require.ErrorIs(t, err, cut)
	_, err = restore(db, "", file, false)
	require.ErrorIs(t, err, transfer.ErrNotEmpty)
	require.Equal(t, there, rowsIn(t, db))
}

// TestRowsOfAnInterruptedCopyAreItsOwn also after one that left them out, and was interrupted too.
func TestRowsOfAnInterruptedCopyAreItsOwn(t *testing.T) {
	t.Parallel()
	_, file, _ := withRows(t, "app/")
	cut, db := errors.New("cut off"), modeltest.OpenMemory(t)
	last := 0
	count := &hookedStore{Database: modeltest.OpenMemory(t), hook: func(n int) error { last = n; return nil }}
	_, err := restore(count, "", file, false)
	require.NoError(t, err)
	for i, at := range []int{last, 2} {
		_, err := restore(&hookedStore{Database: db, hook: func(n int) error {
			if n == at {
				return cut
			}
			return nil
		}}, "", file, i == 1)
		require.ErrorIs(t, err, cut)
		require.NotEmpty(t, rowsIn(t, db))
	}
	report, err := restore(db, "", file, false)
	require.NoError(t, err)
	require.Positive(t, report.Rows)
}

func TestBadPrefixesOfRowsAreRefused(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	for _, prefix := range []string{string(p.C.Keys().Prefix), "\x02futura\x00", "\xff", "\xff/status"} {
		o := transfer.Options{Rows: [][]byte{[]byte("app"), []byte(prefix)}, IgnoreLive: true}
		_, err := transfer.Backup(context.Background(), p.DB, "check", &memoryFile{}, o)
		require.ErrorIs(t, err, transfer.ErrBadRows)
		db := modeltest.OpenMemory(t)
		_, err = transfer.Migrate(context.Background(), p.DB, db, "check", o)
		require.ErrorIs(t, err, transfer.ErrBadRows)
		require.Empty(t, allOf(t, db))
	}
}

// TestAFileWritesNothingElsewhere restores files that have rows which they don't name, such as another cluster's.
func TestAFileWritesNothingElsewhere(t *testing.T) {
	t.Parallel()
	p := modeltest.Populate(t)
	others := string(layout.NewKeyspace("others").Config())
	for _, bad := range []struct {
		name string
		row  string
	}{
		{"", "app"}, {"app", "apq"}, {"app", "ap"}, {"\\x00", others}, {"", others}, {"", "\xff/status"}, {"", ""},
		{others, others}, {"\\xff", "\xff/status"}, {"\\x", "app"},
	} {
		head := archive.Head{Cluster: "check"}
		if bad.name != "" || bad.row != "app" {
			head.Rows = []string{bad.name}
		}
		var file memoryFile
		items, err := archive.NewWriter(&file, head)
		require.NoError(t, err)
		config := p.C.Config()
		require.NoError(t, items.Add(p.C.Keys().Config()[len(p.C.Keys().Prefix):], layout.Encode(&config)))
		require.NoError(t, items.Add([]byte("\xff"+bad.row), []byte("bad")))
		_, err = items.Close()
		require.NoError(t, err)
		db := modeltest.OpenMemory(t)
		_, err = restore(db, "", &file, false)
		if head.Rows != nil && bad.name == "" && bad.row == "" {
			require.NoError(t, err) // the empty key is one of a store
			continue
		}
		require.ErrorIs(t, err, layout.ErrBadRecord, "%q", bad)
		for _, item := range allOf(t, db) {
			require.True(t, bytes.HasPrefix(item.Key, p.C.Keys().Prefix), "%q", item.Key)
		}
	}
}
