package wasm

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCodeStore(t *testing.T) {
	t.Parallel()
	s, err := newCodeStore(t.TempDir(), 3000)
	require.NoError(t, err)
	sums := make([][sha256.Size]byte, 4)
	for i := range sums {
		sums[i] = sha256.Sum256([]byte{byte(i)})
		_, ok := s.get(sums[i])
		require.False(t, ok)
		made := machineCode{sums[i], make([]byte, 900)}
		require.NoError(t, s.put(sums[i], made))
		found, ok := s.get(sums[i])
		require.True(t, ok)
		require.Equal(t, made, found)
		at := time.Now().Add(time.Duration(i-10) * time.Minute)
		require.NoError(t, os.Chtimes(s.path(sums[i]), at, at))
		info, err := os.Stat(s.path(sums[i]))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	_, ok := s.get(sums[0])
	require.False(t, ok, "the oldest made room")
	_, ok = s.get(sums[1])
	require.True(t, ok)

	whole, err := os.ReadFile(s.path(sums[1]))
	require.NoError(t, err)
	for at := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 1
		require.NoError(t, os.WriteFile(s.path(sums[1]), damaged, 0o600))
		found, ok := s.get(sums[1])
		isName := at >= len(codeMark) && at < len(codeMark)+sha256.Size // the engine compares it
		require.Equal(t, isName, ok, at)
		require.Equal(t, isName, found.bytes != nil)
	}
	require.NoError(t, os.WriteFile(s.path(sums[1]), whole[:len(whole)/2], 0o600))
	_, ok = s.get(sums[1])
	require.False(t, ok)
	require.NoError(t, s.drop(sums[1]))
	require.NoError(t, s.drop(sums[1]))

	abandoned := filepath.Join(s.dir, "old.tmp")
	require.NoError(t, os.WriteFile(abandoned, nil, 0o600))
	long := time.Now().Add(-2 * abandonedAfter)
	require.NoError(t, os.Chtimes(abandoned, long, long))
	require.NoError(t, s.put(sums[0], machineCode{sums[0], []byte("code")}))
	require.NoFileExists(t, abandoned)
}

// TestCodeOfAnotherEngineIsMadeAnew plants code that is whole, and not what the
// engine asks for or can use.
func TestCodeOfAnotherEngineIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module := printing(1, 1, "good")
	checked, _, err := inspect(module, mebibyte)
	require.NoError(t, err)
	s, err := newCodeStore(dir, mebibyte)
	require.NoError(t, err)
	sum := sha256.Sum256(checked)
	run := func() {
		e, err := New(context.Background(), Config{Isolation: IsolationProcess, CacheDir: dir})
		require.NoError(t, err)
		stillWorks(t, e)
		require.NoError(t, e.Close(context.Background()))
	}
	run()
	right, ok := s.get(sum)
	require.True(t, ok)
	otherVersion := append([]byte(nil), right.bytes...)
	otherVersion[len("WAZEVO")+2] ^= 1
	for name, planted := range map[string]machineCode{
		"another name":    {sha256.Sum256(nil), right.bytes},
		"empty":           {right.name, nil},
		"no code":         {right.name, []byte("no code at all, of this or another engine")},
		"another version": {right.name, otherVersion},
	} {
		require.NoError(t, s.put(sum, planted))
		run()
		found, ok := s.get(sum)
		require.True(t, ok, name)
		require.Equal(t, right, found, name)
	}
}
