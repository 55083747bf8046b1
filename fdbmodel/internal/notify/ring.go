package notify

import (
	"context"
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

const (
	// wakeLimit is the maximum number of workers that one submit wakes across
	// processes. Several that share a search wake up to ringPage.
	wakeLimit = 16
	// ringPage is the number of idle workers examined together, and ringPages
	// the maximum number of pages while none fits.
	ringPage  = 4 * wakeLimit
	ringPages = 4
)

// search is one for idle workers of other processes, for futures that entered the pool up to a version.
type search struct {
	version kv.Version // kv.NoVersion if a caller knows none
	placed  Demands
	callers int
}

// share adds the futures of one more caller.
func (s *search) share(version kv.Version, placed Demands) {
	switch {
	case s.callers == 0 || version == kv.NoVersion:
		s.version = version
	case s.version != kv.NoVersion:
		s.version = max(s.version, version)
	}
	s.placed.AddAll(placed)
	s.callers++
}

// background runs functions in the background. It must not block.
type background func(func(context.Context))

// OfferBackground has run called with functions to run in the background, until withdraw, while none that was offered
// before is: no caller of Wake then waits for workers of other processes, and those that come during a search share the
// next one. run must not block.
func (n *Notifier) OfferBackground(run func(func(context.Context))) (withdraw func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	offered := background(run)
	n.backgrounds = append(n.backgrounds, &offered)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.backgrounds = slices.DeleteFunc(n.backgrounds, func(b *background) bool { return b == &offered })
	}
}

// wakeOtherProcesses wakes idle workers of other processes, or has that done in the background.
func (n *Notifier) wakeOtherProcesses(ctx context.Context, version kv.Version, placed Demands) {
	n.mu.Lock()
	if len(n.backgrounds) == 0 {
		n.mu.Unlock()
		n.search(ctx, search{version, placed, 1})
		return
	}
	defer n.mu.Unlock()
	n.next.share(version, placed)
	if !n.searching {
		n.searching = true
		n.searchBehind()
	}
}

// searchBehind has searches made in the background. It is called under mu.
func (n *Notifier) searchBehind() {
	by := n.backgrounds[0]
	(*by)(func(ctx context.Context) { n.searchOn(ctx, by) })
}

// searchOn searches until no caller wants it. Once what it runs by was withdrawn, another one goes on, if there is one:
// that whose goroutine this is does not wait for what others submit.
func (n *Notifier) searchOn(ctx context.Context, by *background) {
	for {
		n.mu.Lock()
		next := n.next
		switch {
		case next.callers == 0:
			n.searching = false
			n.mu.Unlock()
			return
		case len(n.backgrounds) > 0 && !slices.Contains(n.backgrounds, by):
			n.searchBehind()
			n.mu.Unlock()
			return
		}
		n.next = search{}
		n.mu.Unlock()
		n.search(ctx, next)
	}
}

// search wakes workers by hints, and through the store for what no worker heeds.
func (n *Notifier) search(ctx context.Context, s search) {
	n.hintOthers(ctx, s.placed)
	if len(s.placed.queues()) == 0 {
		return
	}
	if err := n.wakeInRing(ctx, s); errors.Is(err, kv.ErrTooOld) { // the process was stopped meanwhile, or is slow
		s.version = kv.NoVersion
		_ = n.wakeInRing(ctx, s)
	}
}

// wakeInRing wakes workers in the ring. A worker that went idle before the version is seen here; one that went
// idle after that version read the ready ranges at a later version and saw the futures. It returns why the ring
// could not be read.
func (n *Notifier) wakeInRing(ctx context.Context, s search) error {
	tx := n.db.Begin(kv.Options{Tag: "futura-wake"})
	defer tx.Cancel()
	if s.version != kv.NoVersion {
		tx.SetReadVersion(s.version)
	}
	limit := min(s.callers*wakeLimit, ringPage)
	var woken []layout.WorkerID
	// First those that have not failed the futures.
	for _, sparing := range []bool{true, false} {
		if len(woken) == limit || !sparing && !s.placed.anyFailed() {
			break
		}
		for queue := range s.placed.queues() {
			more, err := n.wakeQueue(ctx, tx, queue, s.placed, sparing, limit-len(woken))
			if err != nil {
				return err
			}
			if woken = append(woken, more...); len(woken) == limit {
				break
			}
		}
	}
	if len(woken) == 0 {
		return nil
	}
	// A hint that fails costs one poll interval; its error is not the caller's.
	_, _ = tx.Commit(ctx)
	if hinter := n.hinter(); hinter != nil {
		hinter.Met(woken)
	}
	return nil
}

// wakeQueue wakes up to limit workers in the ring of a queue that can run one of
// placed, and returns them. With sparing it wakes none that has failed it.
func (n *Notifier) wakeQueue(ctx context.Context, tx kv.Tx, queue string, placed Demands, sparing bool, limit int,
) (woken []layout.WorkerID, err error) {
	prefix := n.keys.IdleQueue(queue)
	ring := kv.Prefix(prefix)
	for pages := range ringPages {
		page, err := tx.Snapshot().GetRange(ring, kv.RangeOptions{Limit: ringPage}).Wait(ctx)
		if err != nil || len(page.Items) == 0 {
			return woken, err
		}
		first := 0
		if pages == 0 {
			first = n.random(len(page.Items))
		}
		for i := range page.Items {
			item := page.Items[(first+i)%len(page.Items)]
			rest := tuple.NewReader(item.Key[len(prefix):])
			worker := layout.WorkerID(rest.Text())
			var idle layout.IdleRecord
			if rest.Err() != nil || layout.Decode(item.Key, item.Value, &idle) != nil {
				continue
			}
			shard, found := placed.take(queue, func(d Demand) bool {
				return fitsIdle(&idle, d) && !(sparing && d.FailedOn == worker) && !d.refusedBy(NameOf(worker, idle.Labels)) &&
					!n.defersHere(worker, d)
			})
			if !found {
				continue
			}
			value := layout.EncodeStamped(&layout.WorkerWakeRecord{Shard: shard + 1})
			tx.SetVersionstampedValue(n.keys.Worker(worker, layout.WorkerWake), value, layout.StampOffset)
			// A worker that is alive looks for work and returns to the ring. A
			// vanished one must not take a second hint from the others.
			tx.Clear(item.Key)
			if woken = append(woken, worker); len(woken) == limit {
				return woken, nil
			}
		}
		if _, wanted := placed.queues()[queue]; !wanted || !page.More {
			break
		}
		ring.Begin = kv.After(page.Items[len(page.Items)-1].Key)
	}
	return woken, nil
}

// defersHere reports whether a worker is one of this process and leaves futures to others.
func (n *Notifier) defersHere(worker layout.WorkerID, d Demand) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.workers[worker]
	return r != nil && r.want.defers(d)
}

// wakeNear wakes the idle workers that futures are left to. Each of them stands for
// one future of its kind.
func (n *Notifier) wakeNear(ctx context.Context, version kv.Version, placed Demands) {
	var far []Demand
	for d, left := range placed {
		switch {
		case d.Near == "" || left <= 0:
		case n.wakeNearHere(d):
			placed[d]--
		case len(far) < wakeLimit:
			far = append(far, d)
		}
	}
	if len(far) == 0 {
		return
	}
	tx := n.db.Begin(kv.Options{Tag: "futura-wake"})
	defer tx.Cancel()
	if version != kv.NoVersion {
		tx.SetReadVersion(version)
	}
	woken := 0
	for _, d := range far {
		key := n.keys.Idle(d.Queue, d.Near)
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err != nil {
			return
		}
		var idle layout.IdleRecord
		if value == nil || layout.Decode(key, value, &idle) != nil || !fitsIdle(&idle, d) {
			continue
		}
		wake := layout.EncodeStamped(&layout.WorkerWakeRecord{Shard: d.Shard + 1})
		tx.SetVersionstampedValue(n.keys.Worker(d.Near, layout.WorkerWake), wake, layout.StampOffset)
		tx.Clear(key)
		placed[d]--
		woken++
	}
	if woken > 0 {
		_, _ = tx.Commit(ctx) // a hint
	}
}

// EnterRing writes the worker into the idle ring of its queues, with what is free of its
// resources, if it can run something by its info, and watches its wake key.
func (w *Worker) EnterRing(tx kv.Tx, able *layout.WorkerInfo, free layout.Resources, noObjects bool) kv.Watch {
	record := layout.Encode(idleRecordOf(able, free, noObjects))
	for _, q := range able.Queues {
		tx.Set(w.notifier.keys.Idle(q, w.id), record)
	}
	w.inRing = true
	return tx.Watch(w.notifier.keys.Worker(w.id, layout.WorkerWake))
}

// InRing reports whether the worker is in the idle ring, as far as it knows.
func (w *Worker) InRing() bool { return w.inRing }

// LeaveRing removes the worker from the idle ring. Once that has committed, call Left.
func (w *Worker) LeaveRing(tx kv.Tx) {
	for _, q := range w.queues {
		tx.Clear(w.notifier.keys.Idle(q, w.id))
	}
}

// Left says that the worker is not in the ring.
func (w *Worker) Left() { w.inRing = false }

// kindPage is how many workers of the ring are compared with one of them.
const kindPage = 128

// CountIdle counts the workers in the ring, up to kindPage, and those of them that can run all that
// the worker can, with what is free of its resources.
func (w *Worker) CountIdle(ctx context.Context, tx kv.Reader, able *layout.WorkerInfo, free layout.Resources,
	noObjects bool,
) (all, alike int, err error) {
	ring := kv.Prefix(w.notifier.keys.IdleQueue(w.queues[0]))
	page, err := tx.GetRange(ring, kv.RangeOptions{Limit: kindPage}).Wait(ctx)
	mine := idleRecordOf(able, free, noObjects)
	for _, item := range page.Items {
		var other layout.IdleRecord
		if layout.Decode(item.Key, item.Value, &other) == nil && covers(&other, mine) {
			alike++
		}
	}
	return len(page.Items), alike, err
}

// covers reports whether an idle worker can run all that another one can, but for what requires that one by
// its own labels. It is false where the functions are too many to list.
func covers(one, other *layout.IdleRecord) bool {
	for name, value := range other.Labels {
		if has, found := one.Labels[name]; !layout.IsOwnLabel(name) && (!found || has != value) {
			return false
		}
	}
	return len(one.Functions) > 0 && slices.Equal(one.Functions, other.Functions) && (other.NoRoom || !one.NoRoom) &&
		one.CPU >= other.CPU && one.RAM >= other.RAM && one.GPU >= other.GPU
}

// Woken is the question for which futures a worker was woken.
type Woken struct {
	worker  *Worker
	shard   int
	asks    bool // of the store
	pending kv.Pending[[]byte]
}

// AskWoken asks for what the worker was woken. Only the first question after a hint has an
// answer.
func (w *Worker) AskWoken(tx kv.Reader) Woken {
	h := w.woken.Swap(nil)
	switch {
	case h != nil:
		w.far = h.far
		if w.notifier.keys.Shards > 1 {
			w.heard = h.count // the claim may not look into other shards
		}
		return Woken{worker: w, shard: h.shard}
	case w.inRing:
		return Woken{worker: w, shard: -1, asks: true, pending: tx.Get(w.notifier.keys.Worker(w.id, layout.WorkerWake))}
	default:
		return Woken{worker: w, shard: -1}
	}
}

// IsKnown reports whether Shard has the answer, without Wait.
func (q *Woken) IsKnown() bool { return !q.asks }

// Shard returns that of the futures, or -1 if the worker was not woken, or does not know.
func (q *Woken) Shard() int { return q.shard }

// Wait waits for the answer.
func (q *Woken) Wait(ctx context.Context) error {
	w := q.worker
	value, err := q.pending.Wait(ctx)
	if err != nil || value == nil {
		return err
	}
	var wake layout.WorkerWakeRecord
	stamp, err := layout.DecodeStamped(w.notifier.keys.Worker(w.id, layout.WorkerWake), value, &wake)
	if err != nil || stamp == w.wokenAt || wake.Shard > w.notifier.keys.Shards {
		return nil // unknown, or of a newer version
	}
	w.wokenAt, q.shard = stamp, wake.Shard-1
	return nil
}

// NameOf returns what refusals of a worker are remembered by.
func NameOf(worker layout.WorkerID, labels map[string]string) string {
	one := layout.Refusal{Worker: worker, Peer: labels[layout.LabelPeer]}
	return one.Name()
}

// maxIdleFunctions is the maximum size of the names in an IdleRecord, in bytes.
const maxIdleFunctions = 2 << 10

func idleRecordOf(info *layout.WorkerInfo, free layout.Resources, noObjects bool) *layout.IdleRecord {
	record := layout.IdleRecord{Resources: free, Labels: info.Labels, NoRoom: noObjects}
	size := 0
	for _, f := range info.Functions {
		size += len(f)
	}
	if size <= maxIdleFunctions {
		record.Functions = info.Functions
	}
	return &record
}

// fitsIdle reports whether the worker may be able to take a future.
func fitsIdle(r *layout.IdleRecord, d Demand) bool {
	info := layout.WorkerInfo{Functions: r.Functions, Labels: r.Labels}
	return r.Fit(d.requirements()) && !(d.Object && r.NoRoom) && (d.Labels == "" || info.LabelSet().Have(d.Labels)) &&
		(len(r.Functions) == 0 || info.Runs(d.Function))
}
