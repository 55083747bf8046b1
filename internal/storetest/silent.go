package storetest

import (
	"context"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/signal"
)

// Silent is a store that can be away: then reads and commits wait until it is back, or their contexts end.
type Silent struct {
	kv.Database
	asked chan struct{}

	mu   sync.Mutex
	back chan struct{} // closed when it is back; nil unless it is away
}

// NewSilent returns a store that answers until Leave.
func NewSilent(db kv.Database) *Silent { return &Silent{Database: db, asked: make(chan struct{}, 1)} }

// Leave has the store answer nothing.
func (s *Silent) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = make(chan struct{})
}

// Return has the store answer again, also what it was asked meanwhile.
func (s *Silent) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back != nil {
		close(s.back)
		s.back = nil
	}
}

// Asked has room for one signal: it was asked while it was away.
func (s *Silent) Asked() <-chan struct{} { return s.asked }

func (s *Silent) wait(ctx context.Context) error {
	s.mu.Lock()
	back := s.back
	s.mu.Unlock()
	if back == nil {
		return nil
	}
	signal.Send(s.asked)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-back:
		return nil
	}
}

// Begin implements kv.Database.
func (s *Silent) Begin(o kv.Options) kv.Tx { return &silentTx{s.Database.Begin(o), s} }

type silentTx struct {
	kv.Tx
	store *Silent
}

func (s *silentTx) Get(key []byte) kv.Pending[[]byte] { return silentReader{s.Tx, s.store}.Get(key) }

func (s *silentTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return silentReader{s.Tx, s.store}.GetRange(r, o)
}

func (s *silentTx) Snapshot() kv.Reader { return silentReader{s.Tx.Snapshot(), s.store} }

func (s *silentTx) Commit(ctx context.Context) (kv.Committed, error) {
	if err := s.store.wait(ctx); err != nil {
		return kv.Committed{}, err
	}
	return s.Tx.Commit(ctx)
}

type silentReader struct {
	kv.Reader
	store *Silent
}

func (s silentReader) Get(key []byte) kv.Pending[[]byte] { return late(s.store, s.Reader.Get(key)) }

func (s silentReader) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return late(s.store, s.Reader.GetRange(r, o))
}

func late[T any](store *Silent, answer kv.Pending[T]) kv.Pending[T] {
	return kv.Later(func(ctx context.Context) (nothing T, err error) {
		if err := store.wait(ctx); err != nil {
			return nothing, err
		}
		return answer.Wait(ctx)
	})
}
