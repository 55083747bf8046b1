package peerworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
)

// Bounds of fetching a module.
const (
	// fetchTime is how long a module waits for its turn, and for room.
	fetchTime = 10 * time.Minute
	// maxDownloads are fetched at a time.
	maxDownloads = 8
)

// moduleCache is the modules of the worker's own cluster.
type moduleCache struct {
	worker *Worker
	// removing is held while a module is removed, or looked for in the cluster: one that is found stays for
	// the chunk that looks for it.
	removing sync.Mutex
	mu       sync.Mutex
	// fetching are those on their way, each from the head that names it: no head waits for
	// what another one sends.
	fetching map[blobName]*fetching
	turns    chan struct{} // of downloads
	cut      spools
	// here are those that are here, with when they were last used, and by whom.
	here map[string]lastUse
	// downloads are the turns of each party, if several heads may give orders.
	downloads map[string]chan struct{}
}

type lastUse struct {
	at    time.Time
	party string
}

type fetching struct {
	done chan struct{}
	err  error
}

func newModules(w *Worker) *moduleCache {
	return &moduleCache{worker: w, fetching: map[blobName]*fetching{}, here: map[string]lastUse{},
		downloads: map[string]chan struct{}{},
		turns:     make(chan struct{}, maxDownloads),
		cut:       spools{clock: w.options.clock, by: map[blobName]cutSpool{}}}
}

// isHere reports whether a module is in the cluster, where it stays while the worker has a chunk that names it.
func (m *moduleCache) isHere(ctx context.Context, head, cid string) (bool, error) {
	m.mu.Lock()
	_, here := m.here[cid]
	if here { // used before it could be removed
		m.here[cid] = lastUse{m.worker.options.clock.Now(), m.worker.party(head)}
	}
	m.mu.Unlock()
	if here {
		return true, nil
	}
	m.removing.Lock()
	defer m.removing.Unlock()
	stored, err := modules.Of(m.worker.node.cluster).List(ctx)
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(stored, func(s layout.Module) bool { return s.CID == cid && s.Size > 0 }) {
		return false, nil
	}
	m.use(head, cid)
	return true, nil
}

func (m *moduleCache) use(head, cid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.here[cid] = lastUse{m.worker.options.clock.Now(), m.worker.party(head)}
}

// fetch gets a module of a head, once however many of its orders ask.
func (m *moduleCache) fetch(ctx context.Context, head, cid string) error {
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

func (m *moduleCache) fetchOne(ctx context.Context, head, cid string) error {
	waiting, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	wait := func(turns chan struct{}) error {
		select {
		case turns <- struct{}{}:
			return nil
		case <-waiting.Done():
			return fmt.Errorf("module %s: too many others are fetched: %w", cid, waiting.Err())
		}
	}
	own := m.turnsOf(head)
	if err := wait(own); err != nil {
		return err
	}
	defer func() { <-own }()
	if err := m.awaitRoom(waiting, head, cid); err != nil {
		return fmt.Errorf("module %s: %w", cid, err)
	}
	if err := wait(m.turns); err != nil { // which one that waits for room does not take from others
		return err
	}
	defer func() { <-m.turns }()
	size, err := m.download(ctx, blobName{head, cid})
	if err != nil {
		return fmt.Errorf("module %s: %w", cid, err)
	}
	m.worker.log.Info("fetched a module", "module", cid, "bytes", size, "head", head)
	m.worker.counts.fetched.Add(1)
	here, err := m.isHere(ctx, head, cid)
	if err == nil && !here {
		err = fmt.Errorf("module %s was removed again: no order needed it then", cid)
	}
	if err != nil {
		return err
	}
	return m.evict(ctx, cid)
}

// turnsOf returns the turns of a head's downloads: half of all, unless it is the only head that
// the worker may have, so that one that sends slowly holds up no other.
func (m *moduleCache) turnsOf(head string) chan struct{} {
	w := m.worker
	party, most := w.party(head), maxDownloads
	if w.options.AllowAnyHead || len(w.heads) > 1 {
		most = maxDownloads / 2
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.downloads[party] == nil {
		m.downloads[party] = make(chan struct{}, most)
	}
	return m.downloads[party]
}

// store stores a module, and removes others that take too much room.
func (m *moduleCache) store(ctx context.Context, head string, code []byte, alias string) error {
	info, err := modules.Of(m.worker.node.cluster).Put(ctx, code, alias)
	if err != nil {
		return err
	}
	m.use(head, info.CID)
	return m.evict(ctx, info.CID)
}

// download gets a module, which the network verifies, and stores it. What was cut off is
// kept for a while, and not fetched again.
func (m *moduleCache) download(ctx context.Context, name blobName) (size int64, err error) {
	code, err := m.cut.take(name)
	if err != nil {
		return 0, err
	}
	last, report := code.size, m.worker.transferring(TransferModule, name)
	err = m.worker.network.Fetch(ctx, name.head, name.id, modules.MaxSize, code.reader(), code,
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

// awaitRoom waits while chunks use as many bytes of other modules as may be kept, unless those
// of the head use less than its share.
func (m *moduleCache) awaitRoom(ctx context.Context, head, cid string) error {
	for {
		stored, err := modules.Of(m.worker.node.cluster).List(ctx)
		if err != nil {
			return err
		}
		used, size, own := m.used(), int64(0), int64(0)
		party, most := m.worker.party(head), m.worker.options.ModuleCache
		for _, s := range stored {
			if by := used[s.CID]; s.CID != cid && len(by) > 0 {
				size += s.Size
				if by[party] {
					own += s.Size
				}
			}
		}
		if size < most || size < maxOvercommit*most && own < m.worker.bytesShare(head, most) {
			return nil
		}
		if clock.Sleep(ctx, clock.Real{}, lookAgain) != nil {
			return fmt.Errorf("chunks use %d bytes of other modules, and no more than %d are kept", size,
				m.worker.options.ModuleCache)
		}
	}
}

// used are the modules that chunks use, with the parties whose chunks do.
func (m *moduleCache) used() map[string]map[string]bool {
	used := map[string]map[string]bool{}
	for _, c := range m.worker.all() {
		if used[c.module] == nil {
			used[c.module] = map[string]bool{}
		}
		used[c.module][m.worker.party(c.name.head)] = true
	}
	return used
}

// evict removes modules that no chunk uses and no head has installed, while there are too
// many bytes of them: first those that the party with most of them has used the longest ago.
func (m *moduleCache) evict(ctx context.Context, but string) error {
	stored, err := modules.Of(m.worker.node.cluster).List(ctx)
	if err != nil {
		return err
	}
	used := m.used()
	used[but] = map[string]bool{}
	for _, s := range m.surplus(stored, used) {
		if err := m.remove(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a module, unless a chunk has come that uses it.
func (m *moduleCache) remove(ctx context.Context, s layout.Module) error {
	m.removing.Lock()
	defer m.removing.Unlock()
	m.mu.Lock()
	_, used := m.used()[s.CID]
	if !used {
		delete(m.here, s.CID)
	}
	m.mu.Unlock()
	if used {
		return nil
	}
	_, err := modules.Of(m.worker.node.cluster).Remove(ctx, s.CID, false)
	switch {
	case err == nil:
		m.worker.log.Info("removed a module that was not used for the longest time", "module", s.CID, "bytes", s.Size)
	case !errors.Is(err, fdbmodel.ErrInUse) && !errors.Is(err, fdbmodel.ErrNotFound) &&
		!errors.Is(err, fdbmodel.ErrTransition):
		return err
	}
	return nil
}

// surplus are the modules to be removed, so that no more are left than are kept.
func (m *moduleCache) surplus(stored []layout.Module, used map[string]map[string]bool) (out []layout.Module) {
	m.mu.Lock()
	defer m.mu.Unlock()
	total, of := int64(0), map[string]int64{}
	var idle []layout.Module
	for _, s := range stored {
		total += s.Size
		of[m.here[s.CID].party] += s.Size
		// Heads of b7s install a function once.
		if _, inUse := used[s.CID]; !inUse && len(s.Aliases) == 0 {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b layout.Module) int {
		return cmp.Or(m.here[a.CID].at.Compare(m.here[b.CID].at), strings.Compare(a.CID, b.CID))
	})
	for total > m.worker.options.ModuleCache && len(idle) > 0 {
		next := 0
		for i := range idle {
			if of[m.here[idle[i].CID].party] > of[m.here[idle[next].CID].party] {
				next = i
			}
		}
		s := idle[next]
		out, idle = append(out, s), slices.Delete(idle, next, next+1)
		total -= s.Size
		of[m.here[s.CID].party] -= s.Size
	}
	return out
}
