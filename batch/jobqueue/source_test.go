package jobqueue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
)

// source is a list of jobs in memory, named by their indexes, that counts how often
// it is asked.
type source struct {
	mu     sync.Mutex
	last   uint64
	heads  int
	reads  []uint64
	broken error
	gate   chan struct{} // if set, Head waits for it
}

func (s *source) push(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last += uint64(n)
}

func (s *source) AtIndex(_ context.Context, index uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, index)
	if index > s.last {
		return 0, jobqueue.ErrNoJob
	}
	return index, s.broken
}

func (s *source) Head(context.Context) (uint64, error) {
	s.mu.Lock()
	s.heads++
	gate, last, err := s.gate, s.last, s.broken
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return last, err
}

// progress is a progress in memory that outlives its consumer.
type progress struct {
	mu      sync.Mutex
	stored  bool
	index   uint64
	history []uint64
	parked  map[uint64]jobqueue.Parked
	broken  error
}

func (p *progress) ProcessedIndex(_ context.Context, initial uint64) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return 0, p.broken
	}
	if !p.stored {
		p.stored, p.index = true, initial
	}
	return p.index, nil
}

func (p *progress) SetProcessedIndex(_ context.Context, index uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	p.index, p.history = index, append(p.history, index)
	return nil
}

func (p *progress) Park(_ context.Context, job jobqueue.Parked) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	if p.parked == nil {
		p.parked = map[uint64]jobqueue.Parked{}
	}
	p.parked[job.Index] = job
	return nil
}

func (p *progress) at() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index
}

func (p *progress) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
}

// passing is a worker that passes jobs on: a test says when they are done.
type passing struct {
	mu  sync.Mutex
	ran []uint64
}

func (w *passing) Run(_ context.Context, _ *jobqueue.Consumer[uint64], job jobqueue.Job[uint64]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if job.Value != job.Index {
		return errors.New("another job")
	}
	w.ran = append(w.ran, job.Index)
	return nil
}

// requireRan compares the jobs that were run, each as often as it was.
func (w *passing) requireRan(t *testing.T, want ...uint64) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := slices.Sorted(slices.Values(w.ran))
	require.Equal(t, want, got)
}

// requireGrowing checks that the progress never went back.
func (p *progress) requireGrowing(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.True(t, slices.IsSorted(p.history), "%v", p.history)
}
