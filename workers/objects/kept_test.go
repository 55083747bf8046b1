package objects

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeptBeforeADelete has objects put, and deleted by who finds them unused, at the
// same time: what was counted as used is there.
func TestKeptBeforeADelete(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Memory: 16 << 20})
	var mu sync.Mutex
	uses := map[Hash]int{}
	count := func(n int) func(Ref) {
		return func(ref Ref) {
			mu.Lock()
			defer mu.Unlock()
			uses[ref.Hash] += n
		}
	}
	unused := func(hash Hash) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return uses[hash] == 0
		}
	}
	content := []byte("the same for all")
	name := RefOf(int64(len(content)), []Hash{HashPiece(content)})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				var ref Ref
				var err error
				if ref, err = s.Put(context.Background(), bytes.NewReader(content), PutOptions{Kept: count(1)}); err != nil {
					t.Error(err)
				}
				if !s.Has(ref.Hash) {
					t.Error("it is used, and gone")
				}
				count(-1)(ref)
				if _, err := s.DeleteIf(ref.Hash, unused(ref.Hash)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.False(t, s.Has(name.Hash))
	_, err := s.PutBytes(context.Background(), content, PutOptions{Kept: count(1)})
	require.NoError(t, err)
	deleted, err := s.DeleteIf(name.Hash, unused(name.Hash))
	require.NoError(t, err)
	require.False(t, deleted)
	require.True(t, s.Has(name.Hash))
}
