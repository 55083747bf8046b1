package peerworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Bounds of fetching a module.
const (
	// fetchTime is how long a module waits for its turn, and for room.
	fetchTime = 10 * time.Minute
	// maxDownloads are fetched at a time.
	maxDownloads = 8
)

// modules are the modules of the worker's own cluster.
type modules struct {
	worker *Worker
	mu     sync.Mutex
	// fetching are those on their way, each from the head that names it: no head waits for
	// what another one sends.
	fetching map[blobName]*fetching
	turns    chan struct{} // of downloads
	cut      spools
	// here are those that are here, with when they were last used.
	here map[string]time.Time
}

type fetching struct {
	done chan struct{}
	err  error
}

func newModules(w *Worker) *modules {
	return &modules{worker: w, fetching: map[blobName]*fetching{}, here: map[string]time.Time{},
		turns: make(chan struct{}, maxDownloads),
		cut:   spools{clock: w.options.clock, by: map[blobName]cutSpool{}}}
}

// isHere reports whether a module is in the cluster.
func (m *modules) isHere(ctx context.Context, cid string) (bool, error) {
	m.mu.Lock()
	_, here := m.here[cid]
	if here {
		m.here[cid] = m.worker.options.clock.Now()
	}
	m.mu.Unlock()
	if here {
		return true, nil
	}
	stored, err := m.worker.node.cluster.Modules(ctx)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(stored, func(s layout.Module) bool { return s.CID == cid && s.Size > 0 }) {
		return false, nil
	}
	m.use(cid)
	return true, nil
}

func (m *modules) use(cid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.here[cid] = m.worker.options.clock.Now()
}

// fetch gets a module of a head, once however many of its orders ask.
func (m *modules) fetch(ctx context.Context, head, cid string) error {
	name := blobName{head, cid}
	m.mu.Lock()
	if _, here := m.here[cid]; here {
		m.mu.Unlock()
		return nil
	}
	f := m.fetching[name]
	if f == nil {
		f = &fetching{done: make(chan struct{})}
		m.fetching[name] = f
		m.worker.spawn(func() {
			f.err = m.fetchOne(m.worker.ctx, head, cid)
			m.mu.Lock()
			delete(m.fetching, name)
			m.mu.Unlock()
			close(f.done)
		})
	}
	m.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *modules) fetchOne(ctx context.Context, head, cid string) error {
	waiting, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	select {
	case m.turns <- struct{}{}:
	case <-waiting.Done():
		return fmt.Errorf("module %s: too many others are fetched: %w", cid, waiting.Err())
	}
	defer func() { <-m.turns }()
	if err := m.awaitRoom(waiting, cid); err != nil {
		return fmt.Errorf("module %s: %w", cid, err)
	}
	size, err := m.download(ctx, blobName{head, cid})
	if err != nil {
		return fmt.Errorf("module %s: %w", cid, err)
	}
	m.worker.log.Info("fetched a module", "module", cid, "bytes", size, "head", head)
	m.worker.counts.fetched.Add(1)
	m.use(cid)
	return m.evict(ctx, cid)
}

// store stores a module, and removes others that take too much room.
func (m *modules) store(ctx context.Context, code []byte, alias string) error {
	info, err := m.worker.node.cluster.PutModule(ctx, code, alias)
	if err != nil {
		return err
	}
	m.use(info.CID)
	return m.evict(ctx, info.CID)
}

// download gets a module, which the network verifies, and stores it. What was cut off is
// kept for a while, and not fetched again.
func (m *modules) download(ctx context.Context, name blobName) (size int64, err error) {
	code, err := m.cut.take(name)
	if err != nil {
		return 0, err
	}
	last, report := code.size, m.worker.transferring(TransferModule, name)
	err = m.worker.network.Fetch(ctx, name.head, name.id, fdbmodel.MaxModule, code.reader(), code,
		func(done, total int64) {
			m.worker.counts.fetchedBytes.Add(done - last)
			last = done
			report(done, total)
		})
	switch {
	case err == nil:
		size, err = code.size, code.store(ctx, m.worker.node.cluster, name.id)
	case !isFinal(err) && code.size > 0 && ctx.Err() == nil:
		m.cut.put(name, code)
		return 0, err
	}
	code.close()
	return size, err
}

// awaitRoom waits while chunks use as many bytes of other modules as may be kept.
func (m *modules) awaitRoom(ctx context.Context, cid string) error {
	for {
		stored, err := m.worker.node.cluster.Modules(ctx)
		if err != nil {
			return err
		}
		used, size := m.used(), int64(0)
		for _, s := range stored {
			if s.CID != cid && used[s.CID] {
				size += s.Size
			}
		}
		if size < m.worker.options.ModuleCache {
			return nil
		}
		if wait(ctx, lookAgain) != nil {
			return fmt.Errorf("chunks use %d bytes of other modules, and no more than %d are kept", size,
				m.worker.options.ModuleCache)
		}
	}
}

// used are the modules that chunks use.
func (m *modules) used() map[string]bool {
	used := map[string]bool{}
	for _, c := range m.worker.all() {
		used[c.record.Module] = true
	}
	return used
}

// evict removes the modules that were used the longest ago, that no chunk uses and that
// nobody has installed, while there are too many bytes of them.
func (m *modules) evict(ctx context.Context, but string) error {
	stored, err := m.worker.node.cluster.Modules(ctx)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, s := range stored {
		total += s.Size
	}
	used := m.used()
	used[but] = true
	m.mu.Lock()
	slices.SortFunc(stored, func(a, b layout.Module) int {
		if byTime := m.here[a.CID].Compare(m.here[b.CID]); byTime != 0 {
			return byTime
		}
		return strings.Compare(a.CID, b.CID)
	})
	m.mu.Unlock()
	for _, s := range stored {
		if total <= m.worker.options.ModuleCache {
			return nil
		}
		if used[s.CID] || len(s.Aliases) > 0 {
			continue // heads of b7s install a function once
		}
		m.mu.Lock()
		delete(m.here, s.CID)
		m.mu.Unlock()
		_, err := m.worker.node.cluster.RemoveModule(ctx, s.CID, false)
		switch {
		case err == nil:
			total -= s.Size
			m.worker.log.Info("removed a module that was not used for the longest time", "module", s.CID, "bytes", s.Size)
		case !errors.Is(err, fdbmodel.ErrInUse) && !errors.Is(err, fdbmodel.ErrNotFound) &&
			!errors.Is(err, fdbmodel.ErrTransition):
			return err
		}
	}
	return nil
}
