package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

// fill puts futures of several states into the shell's store and returns their
// ids.
func (s *shell) fill() []string {
	var ids []string
	for range 20 {
		ids = append(ids, s.ok("submit", "go:later", "--args", "x"))
	}
	ids = append(ids, s.ok("submit", "go:later", "--args", strings.Repeat("large ", 30_000)))
	s.ok("cancel", ids[0], "--reason", "not wanted")
	return ids
}

// states returns all that list prints of the futures.
func (s *shell) states() string { return s.ok("list", "--json") }

func (s *shell) copied(args ...string) (c copied) {
	require.NoError(s.t, json.Unmarshal([]byte(s.ok(append(args, "--json")...)), &c))
	return c
}

func TestMigrateFromTheCommandLine(t *testing.T) {
	t.Parallel()
	from, to := newShell(t), newShell(t)
	ids := from.fill()
	report := from.copied("migrate", "--from", from.store, "--to", to.store)
	require.Equal(t, int64(len(ids)), report.Futures)
	require.Equal(t, from.states(), to.states())
	require.Contains(t, to.ok("check"), " 0 problems")

	_, e := from.run(exitUsage, "", "migrate", "--from", from.store, "--to", to.store)
	require.Contains(t, e, "not empty")
	for _, stores := range [][]string{
		{"", ""}, {from.store, ""}, {from.store, from.store}, {from.store, "memory:"}, {from.store, "what"},
	} {
		from.run(exitUsage, "", "migrate", "--from", stores[0], "--to", stores[1])
	}
	for _, to := range []string{
		from.store, from.store + "/", strings.TrimSuffix(from.store, "store") + "./store?sync=off",
	} {
		_, e = from.run(exitUsage, "", "migrate", "--from", from.store, "--to", to)
		require.Contains(t, e, "are the same store")
	}
	third := newShell(t)
	third.run(exitNotFound, "", "migrate", "--from", from.store, "--to", third.store, "--cluster", "none")
	require.Contains(t, third.ok("migrate", "--from", to.store, "--to", third.store), report.SHA256)
}

func TestBackupFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ids := s.fill()
	file := filepath.Join(t.TempDir(), "backup")
	report := s.copied("backup", file)
	require.Equal(t, int64(len(ids)), report.Futures)
	require.True(t, report.OneVersion)
	require.False(t, report.Others)
	_, e := s.run(exitUsage, "", "backup", file)
	require.Contains(t, e, "exists")
	again := s.copied("backup", file, "--force")
	require.Equal(t, report.SHA256, again.SHA256)
	s.run(exitNotFound, "", "backup", file+"2", "--cluster", "none")
	s.run(exitUsage, "", "backup", filepath.Join(file, "below"))
	_, e = s.run(exitUsage, "", "backup", filepath.Dir(file), "--force")
	require.Contains(t, e, "is no file")
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "no part of a backup is left")

	restored := newShell(t)
	require.Equal(t, report.SHA256, restored.copied("restore", file).SHA256)
	require.Equal(t, s.states(), restored.states())
	restored.run(exitUsage, "", "restore", file)
	_, e = restored.run(exitOK, "", "restore", file, "--cluster", "rehearsal")
	require.Contains(t, e, "idempotency keys")
	require.Contains(t, restored.ok("check", "--cluster", "rehearsal"), " 0 problems")
}

// TestRowsOfProgramsFromTheCommandLine has rows in a store that belong to no cluster.
func TestRowsOfProgramsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fill()
	put := func(s *shell, keys ...string) {
		db, err := kvopen.Open(context.Background(), s.store, kvopen.Options{Exclusive: true})
		require.NoError(t, err)
		_, err = kv.Transact(context.Background(), db, kv.Retry{}, func(tx kv.Attempt) error {
			for _, key := range keys {
				tx.Set([]byte(key), []byte("of a program"))
			}
			return nil
		})
		require.NoError(t, errors.Join(err, db.Close()))
	}
	put(s, "app/1", "app/2", "\x00")
	dir := t.TempDir()
	some, all, none := filepath.Join(dir, "some"), filepath.Join(dir, "all"), filepath.Join(dir, "none")
	rowsOf := func(r copied) [2]any { return [2]any{r.Rows, r.Others} }
	require.Equal(t, [2]any{int64(2), true}, rowsOf(s.copied("backup", some, "--rows", "app/")))
	require.Equal(t, [2]any{int64(3), false}, rowsOf(s.copied("backup", all, "--rows", `\x00`, "--rows", "app")))
	require.Equal(t, [2]any{int64(0), true}, rowsOf(s.copied("backup", none)))
	for _, bad := range []string{`\xff`, `\x02futura\x00`, `\`} {
		_, e := s.run(exitUsage, "", "backup", filepath.Join(dir, "bad"), "--rows", bad)
		require.NotEmpty(t, e)
	}

	restored := newShell(t)
	require.Equal(t, [2]any{int64(3), false}, rowsOf(restored.copied("restore", all)))
	_, e := restored.run(exitUsage, "", "restore", all, "--cluster", "rehearsal")
	require.Contains(t, e, "outside of clusters")
	rehearsal := restored.copied("restore", all, "--cluster", "rehearsal", "--without-rows")
	require.Equal(t, [2]any{int64(0), true}, rowsOf(rehearsal))
	require.Contains(t, restored.ok("check", "--cluster", "rehearsal"), " 0 problems")

	moved := newShell(t)
	migrated := s.copied("migrate", "--from", s.store, "--to", moved.store, "--rows", "")
	require.Equal(t, [2]any{int64(3), false}, rowsOf(migrated))
	s.run(exitUsage, "", "migrate", "--from", s.store, "--to", moved.store+"2", "--rows", `\x0`)
}

func TestRestoreOfADamagedFile(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fill()
	file := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", file)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	for says, damaged := range map[string][]byte{
		"cut off": whole[:len(whole)/2], "damaged": flipped, "not a backup": []byte("something else"),
	} {
		require.NoError(t, os.WriteFile(file, damaged, 0o600))
		target := newShell(t)
		_, e := target.run(exitStore, "", "restore", file)
		require.Contains(t, e, says)
		require.Contains(t, e, "nothing was written")
		_, err := os.Stat(strings.TrimPrefix(target.store, "embedded:"))
		require.ErrorIs(t, err, os.ErrNotExist, "the store was not even made")
	}
	s.run(exitUsage, "", "restore", filepath.Join(t.TempDir(), "missing"))
}
