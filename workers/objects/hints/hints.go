// Package hints passes hints between clients and the workers of other processes, past
// the store, over the connections that serve objects: a submit has an idle worker look
// at once, and a worker that ends a future has the client that submitted it look.
//
// Hints are never trusted. One that is lost, late, repeated or invented changes when
// a process looks, and nothing else; what the store does without hints, it does with
// them for everything that no hint reached.
package hints

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers/objects/peer"
)

// Limits of a Sender.
const (
	maxLines = 16 // connections
	maxKnown = 64 // workers that it remembers
	maxAsked = 4  // workers that one hint goes to
	// hintTimeout bounds how long a submit waits for the answers to a hint.
	hintTimeout = 10 * time.Millisecond
	openTimeout = 5 * time.Second
	// A worker that does not heed a hint gets no other one for a while, which doubles.
	refusedMin = time.Millisecond
	refusedMax = 250 * time.Millisecond
	lateMax    = 2 * time.Second
	// A worker that can't be reached is tried again when it is next met, not before
	// this has passed; it doubles.
	closedMin = time.Second
	closedMax = time.Minute
	// evictEvery is how often a worker makes room for another one.
	evictEvery = time.Second
)

// Options of a Sender.
type Options struct {
	// Session is whose mail the client wants hints for, and News is called when there
	// may be some. It must not wait. Default to none.
	Session layout.SessionID
	News    func()
	// Logger receives workers that can't be reached. Defaults to none.
	Logger *slog.Logger
}

// Sender is a fdbmodel.Hinter. It connects to up to 16 of the workers that the cluster
// woke through the store, one read of the store for each. Its methods may be called
// from many goroutines.
type Sender struct {
	cluster *fdbmodel.Cluster
	options Options
	who     peer.Owner
	timeout time.Duration // of a hint
	ctx     context.Context
	cancel  context.CancelFunc
	opening sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	evicted time.Time
	known   []*worker // those that heeded a hint last come first
}

// worker is a worker of another process.
type worker struct {
	id     layout.WorkerID
	line   *peer.Hinting // nil while there is no connection
	client *peer.Client
	opens  bool // the connection is being made
	failed time.Duration
	wait   time.Duration
	after  time.Time // before it the worker is left alone
}

// New returns a sender for a cluster. It has no connections yet. Close ends it.
func New(cluster *fdbmodel.Cluster, o Options) *Sender {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Sender{cluster: cluster, options: o, who: ownerOf(o.Session), timeout: hintTimeout}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// ownerOf names a session on a connection; none is all zeros.
func ownerOf(session layout.SessionID) (who peer.Owner) {
	if len(session) <= len(who) {
		copy(who[:], session)
	}
	return who
}

// SessionOf returns the session that a connection names, empty for none.
func SessionOf(who peer.Owner) layout.SessionID {
	return layout.SessionID(strings.TrimRight(string(who[:]), "\x00"))
}

// Close closes the connections.
func (s *Sender) Close() {
	s.cancel()
	s.mu.Lock()
	s.closed = true
	known := s.known
	s.known = nil
	s.mu.Unlock()
	s.opening.Wait()
	for _, w := range known {
		w.close()
	}
}

// close is called once the worker was taken out of the known ones and it opens no more.
func (w *worker) close() {
	if w.line != nil {
		w.line.Close()
		_ = w.client.Close() // it has no other connections
	}
}

// Hint implements fdbmodel.Hinter.
func (s *Sender) Hint(ctx context.Context, message []byte, n int) (heeded int) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for _, w := range s.reachable() {
		if heeded >= n || ctx.Err() != nil {
			break
		}
		looks, err := w.line.Hint(ctx, message, n-heeded)
		heeded += looks
		s.note(w, looks, err)
	}
	return heeded
}

// reachable returns whom to hint at now.
func (s *Sender) reachable() (to []*worker) {
	now := s.cluster.Clock().Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.known {
		if w.line != nil && !now.Before(w.after) {
			if to = append(to, w); len(to) == maxAsked {
				break
			}
		}
	}
	return to
}

// note remembers how a hint went.
func (s *Sender) note(w *worker, looks int, err error) {
	now := s.cluster.Clock().Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.known, w)
	switch {
	case at < 0:
	case looks > 0:
		w.wait, w.after = 0, time.Time{}
		copy(s.known[1:at+1], s.known[:at])
		s.known[0] = w
	case errors.Is(err, context.DeadlineExceeded):
		w.wait = min(max(2*w.wait, hintTimeout), lateMax)
		w.after = now.Add(w.wait)
	case err != nil && !errors.Is(err, context.Canceled):
		s.drop(at)
	default:
		w.wait = min(max(2*w.wait, refusedMin), refusedMax)
		w.after = now.Add(w.wait)
	}
}

// drop forgets a worker. It is called under mu.
func (s *Sender) drop(at int) {
	w := s.known[at]
	s.known = slices.Delete(s.known, at, at+1)
	if w.line != nil {
		s.opening.Go(w.close)
	}
}

// Met implements fdbmodel.Hinter.
func (s *Sender) Met(workers []layout.WorkerID) {
	now := s.cluster.Clock().Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.sweep()
	for _, id := range workers {
		w := s.find(id)
		if w == nil {
			if w = s.admit(id, now); w == nil {
				return
			}
		}
		if w.line == nil && !w.opens && !now.Before(w.after) {
			w.opens = true
			s.opening.Go(func() { s.open(w) })
		}
	}
}

func (s *Sender) find(id layout.WorkerID) *worker {
	for _, w := range s.known {
		if w.id == id {
			return w
		}
	}
	return nil
}

// sweep forgets workers whose connections have ended.
func (s *Sender) sweep() {
	for at := len(s.known) - 1; at >= 0; at-- {
		if w := s.known[at]; w.line != nil {
			select {
			case <-w.line.Done():
				s.drop(at)
			default:
			}
		}
	}
}

// admit makes room for another worker. It returns nil if there is none.
func (s *Sender) admit(id layout.WorkerID, now time.Time) *worker {
	lines := 0
	for _, w := range s.known {
		if w.line != nil || w.opens {
			lines++
		}
	}
	refused := func(w *worker) bool { return w.line != nil && w.wait > 0 }
	useless := func(w *worker) bool { return w.line == nil && !w.opens }
	if lines >= maxLines && !s.evict(now, refused) || len(s.known) >= maxKnown && !s.evict(now, useless) {
		return nil
	}
	w := &worker{id: id}
	s.known = append(s.known, w)
	return w
}

// evict forgets one of the workers that may be, unless it has just done so: among
// thousands that all are busy, each hint would else meet others.
func (s *Sender) evict(now time.Time, may func(*worker) bool) bool {
	for at := len(s.known) - 1; at >= 0 && !now.Before(s.evicted.Add(evictEvery)); at-- {
		if may(s.known[at]) {
			s.drop(at)
			s.evicted = now
			return true
		}
	}
	return false
}

// open connects to a worker, at its nearest address that answers.
func (s *Sender) open(w *worker) {
	ctx, cancel := context.WithTimeout(s.ctx, openTimeout)
	defer cancel()
	client, line, err := s.dial(ctx, w.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.opens = false
	if err != nil {
		s.options.Logger.Debug("a worker can't be given hints", "worker", w.id, "error", err)
		w.failed = min(max(2*w.failed, closedMin), closedMax)
		w.after = s.cluster.Clock().Now().Add(w.failed)
		return
	}
	w.client, w.line = client, line
	if s.closed {
		s.opening.Go(w.close)
	}
}

var errNoAddress = errors.New("it serves no objects, and so takes no hints")

func (s *Sender) dial(ctx context.Context, id layout.WorkerID) (*peer.Client, *peer.Hinting, error) {
	info, err := s.cluster.Registered(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	addresses := strings.Fields(info.Objects)
	if len(addresses) == 0 {
		return nil, nil, errNoAddress
	}
	// The worker chose where it is reached, and in which network.
	client, err := peer.NewClient(peer.Options{Token: string(info.Secret), PlainText: true})
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, address := range addresses {
		line, err := client.OpenHints(ctx, address, s.who, s.news)
		if err == nil {
			return client, line, nil
		}
		errs = append(errs, err)
	}
	return nil, nil, errors.Join(append(errs, client.Close())...)
}

func (s *Sender) news() {
	if s.options.News != nil {
		s.options.News()
	}
}
