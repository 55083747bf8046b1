package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/workers/objects/held"
)

// clientSource gives the functions of a worker their client. It implements
// taskcontext.ClientSource.
type clientSource struct {
	given  Client
	logger *slog.Logger

	mu     sync.Mutex
	made   taskcontext.MadeClient
	closed bool
}

// onlyCluster stands in for a client where a worker was made without one.
type onlyCluster struct{ cluster *fdbmodel.Cluster }

// Cluster implements Client.
func (c onlyCluster) Cluster() *fdbmodel.Cluster { return c.cluster }

// Given implements taskcontext.ClientSource.
func (s *clientSource) Given() any { return s.given }

// Made implements taskcontext.ClientSource.
func (s *clientSource) Made(open func(*slog.Logger) (taskcontext.MadeClient, error)) (taskcontext.MadeClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%w: it has no client for its functions any more", ErrStopping)
	}
	if s.made != nil {
		return s.made, nil
	}
	made, err := open(s.logger)
	if err != nil {
		return nil, err
	}
	s.made = made
	return made, nil
}

// close closes what was made, and with forGood also ends the source. A worker that
// vanished tells the store nothing, nor one whose store is away.
func (s *clientSource) close(w *Worker, forGood, away bool) {
	s.mu.Lock()
	made := s.made
	s.made, s.closed = nil, forGood
	s.mu.Unlock()
	if made == nil {
		return
	}
	ctx, cancel := withTimeout(w.vanish, w.cluster.Clock(), leaveTimeout)
	defer cancel()
	if away {
		cancel()
	}
	if err := made.Close(ctx); err != nil && !w.vanished() && !errors.Is(err, context.Canceled) {
		w.options.Logger.Warn("the client of the functions could not be closed", "error", err)
	}
}

// readObjects has the process read what other workers have, also if it has no client, until stop is called.
func (w *Worker) readObjects() (stop func()) {
	all, reader := results.Of(w.cluster), &held.Reader{}
	all.OfferReader(reader)
	return func() {
		all.WithdrawReader(reader)
		_ = reader.Close() // what it reads has no use any more
	}
}
