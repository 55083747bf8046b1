// Package futurestore keeps batches in a futures cluster: a work item is a future.
//
// An item is held until a head assigns it to a worker, which runs it and writes
// its end in one transaction with the batch's counters. A chunk is what one
// worker was given of a batch; a worker has one chunk of a batch however often
// it is given items. Items whose worker is lost wait again at once.
//
// The states of items and of futures correspond so:
//
//	0, created              ready, and held
//	1, in progress          ready, and assigned; claimed
//	-1, failed              delayed, or held again, after an attempt that failed
//	100, done               realized
//	-2, permanently failed  failed, also when cancelled
package futurestore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// goPrefix begins a function id that is a Go function of the workers.
const goPrefix = "go:"

// Options of a store. The zero value is right for most.
type Options struct {
	// Backoff is the wait between the attempts of an item. Defaults to that of
	// futures: 1 s, doubled with each up to 5 min.
	Backoff layout.Backoff
}

// Store keeps batches in a cluster. It implements batch.Store, and runs items
// by the cluster's workers.
type Store struct {
	cluster *fdbmodel.Cluster
	batches *batches.Batches
	options Options
}

// New returns the store of a cluster, which remains the caller's.
func New(cluster *fdbmodel.Cluster, o Options) *Store {
	return &Store{cluster: cluster, batches: batches.Of(cluster), options: o}
}

// Describe implements batch.Store.
func (s *Store) Describe() (name string, durable bool) {
	return fmt.Sprintf("futures (cluster %s)", s.cluster.Name()), true
}

// Close implements batch.Store. The cluster stays open.
func (s *Store) Close(context.Context) error { return nil }

// translate turns the model's errors into those of batches.
func translate(err error) error {
	switch {
	case errors.Is(err, fdbmodel.ErrNotFound):
		return as{err, batch.ErrNotFound}
	case errors.Is(err, fdbmodel.ErrIDInUse):
		return fmt.Errorf("%w: %w", batch.ErrExists, err)
	case errors.Is(err, layout.ErrBadSpec), errors.Is(err, layout.ErrBadName), errors.Is(err, fdbmodel.ErrTooLarge):
		return fmt.Errorf("%w: %w", batch.ErrBadBatch, err)
	case errors.Is(err, fdbmodel.ErrTransition):
		return as{err, batch.ErrState}
	default:
		return err
	}
}

// as is an error that is also a sentinel with the same words.
type as struct {
	error
	sentinel error
}

// Unwrap returns the error and the sentinel.
func (e as) Unwrap() []error { return []error{e.error, e.sentinel} }

// Create implements batch.Store. It returns a quota.LimitError, and makes nothing, if
// the cluster has no room for all items: they are futures. They are part of the trace of
// ctx, by layout.TraceKey.
func (s *Store) Create(ctx context.Context, b *batch.Batch, arguments [][]string) error {
	if err := batch.Validate(&b.Template, arguments); err != nil {
		return err
	}
	template, err := b.Template.Encode()
	if err != nil {
		return err
	}
	function, err := Function(ctx, s.cluster, &b.Template)
	if err != nil {
		return err
	}
	if err := quota.Of(s.cluster).Admit(ctx, len(arguments)); err != nil {
		return err
	}
	record := layout.BatchRecord{
		ID: b.ID, Template: template, Queue: Queue(&b.Template), MaxAttempts: b.MaxAttempts, Items: len(arguments),
		Status: int(batch.Created), Reason: b.Reason, CreatedAt: b.CreatedAt.UnixMilli(),
		Maker: rand.Text(), Digest: batch.Digest(b, arguments),
	}
	if err := s.batches.Create(ctx, &record); err != nil {
		return translate(err)
	}
	// Items that an interrupted call created are the same.
	if err := s.submit(ctx, b, function, arguments); err != nil {
		return translate(err)
	}
	err = s.batches.Finish(ctx, b.ID, record.Maker)
	if errors.Is(err, fdbmodel.ErrIDInUse) {
		return fmt.Errorf("%w: %w", batch.ErrBusy, err)
	}
	return translate(err)
}

// Function returns the name of a template's function in a cluster. It returns
// batch.ErrBadBatch if it is not installed.
func Function(ctx context.Context, cluster *fdbmodel.Cluster, t *batch.Template) (string, error) {
	var last error
	for _, name := range t.Functions() {
		function, err := cluster.ResolveFunction(ctx, name)
		if err == nil {
			return withEntry(function, t)
		}
		if last = err; !errors.Is(err, fdbmodel.ErrNotFound) && !errors.Is(err, layout.ErrBadName) {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: function %s: %w", batch.ErrBadBatch, t.Invocation(), last)
}

// withEntry returns the function whose export the template's config names.
func withEntry(function string, t *batch.Template) (string, error) {
	_, export, module := layout.SplitWasm(function)
	switch entry := t.Config.Entry; {
	case entry == "" || export == entry:
		return function, nil
	case !module || export != "":
		return "", fmt.Errorf("%w: entry is %s, and the method of %s names another export: leave one of them out",
			batch.ErrBadBatch, entry, t.Invocation())
	default:
		return function + "/" + entry, nil
	}
}

// Queue is the queue of the workers that run a template.
func Queue(t *batch.Template) string { return cmp.Or(t.Config.Queue, layout.DefaultQueue) }

// CheckQueue returns batch.ErrBadBatch for a template whose queue no registered
// worker serves. The default queue may be without workers for a while.
func CheckQueue(ctx context.Context, cluster *fdbmodel.Cluster, t *batch.Template) error {
	queue := Queue(t)
	if queue == layout.DefaultQueue {
		return nil
	}
	if err := layout.CheckQueueName(queue); err != nil {
		return fmt.Errorf("%w: %w", batch.ErrBadBatch, err)
	}
	members, err := cluster.Workers(ctx)
	if err != nil {
		return err
	}
	for i := range members {
		if members[i].Alive && slices.Contains(members[i].Queues, queue) {
			return nil
		}
	}
	return fmt.Errorf("%w: topic: no worker serves the queue %s: start one (futura worker --queue %s), or use another "+
		"topic", batch.ErrBadBatch, queue, queue)
}

// lanes is how many transactions on the items of a batch are under way at a
// time.
const lanes = 4

// inLanes calls fn for 0 to n-1, some at a time, until one returns false.
func inLanes(n int, fn func(int) bool) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(lanes, n) {
		wg.Go(func() {
			for {
				at := int(next.Add(1)) - 1
				if at >= n {
					return
				}
				if !fn(at) {
					next.Store(int64(n))
				}
			}
		})
	}
	wg.Wait()
}

func (s *Store) submit(ctx context.Context, b *batch.Batch, function string, arguments [][]string) error {
	parts := (len(arguments) + layout.MaxSubmit - 1) / layout.MaxSubmit
	errs := make([]error, parts)
	inLanes(parts, func(at int) bool {
		first := at * layout.MaxSubmit
		subs := make([]fdbmodel.Submission, min(layout.MaxSubmit, len(arguments)-first))
		for i := range subs {
			subs[i] = s.submission(b, function, first+i, arguments[first+i])
			subs[i].Spec.FollowTrace(ctx)
		}
		_, errs[at] = s.cluster.Submit(ctx, subs)
		return errs[at] == nil
	})
	return errors.Join(errs...)
}

func (s *Store) submission(b *batch.Batch, function string, index int, arguments []string) fdbmodel.Submission {
	sub := Submission(&b.Template, function, arguments)
	sub.ID = layout.BatchItemID(b.ID, index)
	sub.Spec.Owner = b.ID
	sub.Spec.MaxRetries, sub.Spec.Backoff = b.MaxAttempts-1, s.options.Backoff
	return sub
}

// Submission is the future that runs a template with arguments, in its queue. A Go function
// gets its list of arguments as JSON, a module as its arguments.
func Submission(t *batch.Template, function string, arguments []string) fdbmodel.Submission {
	config := &t.Config
	sub := fdbmodel.Submission{
		Args: []byte(config.Stdin),
		Spec: layout.Spec{
			Function: function, Argv: arguments, Parallel: max(config.Concurrency, 1), Queue: Queue(t),
			Timeout:      config.Limit(),
			Requirements: layout.Requirements{RAM: config.Memory, Labels: config.Labels},
		},
	}
	for _, v := range config.Environment {
		if sub.Spec.Env == nil {
			sub.Spec.Env = map[string]string{}
		}
		sub.Spec.Env[v.Name] = v.Value
	}
	if host := hostOf(arguments); host != "" && config.RatePerHost > 0 {
		sub.Spec.Pace = &layout.Pace{Key: host, PerSecond: config.RatePerHost, Shared: true}
	}
	if strings.HasPrefix(function, goPrefix) {
		sub.Args, _ = json.Marshal(arguments) // strings always encode
		sub.Spec.Codec = layout.CodecJSON
	}
	return sub
}

// maxHost is how many bytes of a host count; the rest is cut.
const maxHost = 64

// hostOf is the host of the first argument that is a URL.
func hostOf(arguments []string) string {
	for _, a := range arguments {
		if u, err := url.Parse(a); err == nil && u.Scheme != "" && u.Hostname() != "" {
			host := strings.ToLower(u.Hostname()) // which may make it longer
			return strings.ToValidUTF8(host[:min(len(host), maxHost)], "")
		}
	}
	return ""
}

// Get implements batch.Store.
func (s *Store) Get(ctx context.Context, id string) (batch.Batch, error) {
	r, err := s.made(ctx, id)
	if err != nil {
		return batch.Batch{}, err
	}
	return batchOf(&r)
}

// made returns the record of a batch whose items exist.
func (s *Store) made(ctx context.Context, id string) (layout.BatchRecord, error) {
	r, err := s.batches.Get(ctx, id)
	if err == nil && !r.Made {
		err = fmt.Errorf("batch %s: %w", id, fdbmodel.ErrNotFound)
	}
	return r, translate(err)
}

// settled is made, after an interrupted cancel has been completed.
func (s *Store) settled(ctx context.Context, id string) (batch.Batch, error) {
	r, err := s.made(ctx, id)
	if err == nil && r.CancelledAt != 0 {
		r, err = s.completeCancel(ctx, &r)
	}
	if err != nil {
		return batch.Batch{}, translate(err)
	}
	return batchOf(&r)
}

func batchOf(r *layout.BatchRecord) (batch.Batch, error) {
	b := batch.Batch{
		ID: r.ID, MaxAttempts: r.MaxAttempts, Items: r.Items, Status: batch.Status(r.Status), Reason: r.Reason,
		CreatedAt: time.UnixMilli(r.CreatedAt).UTC(),
	}
	if r.FinishedAt != 0 {
		b.FinishedAt = time.UnixMilli(r.FinishedAt).UTC()
	}
	if err := json.Unmarshal(r.Template, &b.Template); err != nil {
		return b, fmt.Errorf("batch %s: %w: its template: %w", r.ID, layout.ErrBadRecord, err)
	}
	return b, nil
}

// listPage is how many batches are read at a time.
const listPage = 100

// List implements batch.Store.
func (s *Store) List(ctx context.Context, active bool, after string, limit int) ([]batch.Batch, error) {
	var list []batch.Batch
	size := listPage
	if !active {
		size = min(limit, listPage)
	}
	page, err := s.batches.List(ctx, after, size)
	for err == nil {
		for i := range page {
			if page[i].Made && !(active && batch.Status(page[i].Status).Over()) && len(list) < limit {
				if b, err := batchOf(&page[i]); err == nil { // those that can't be read are left out
					list = append(list, b)
				}
			}
		}
		if len(page) < size || len(list) >= limit {
			return list, nil
		}
		page, err = s.batches.Behind(ctx, &page[len(page)-1], size)
	}
	return nil, translate(err)
}

// SetReason implements batch.Store.
func (s *Store) SetReason(ctx context.Context, id, reason string) error {
	_, err := s.batches.Update(ctx, id, func(r *layout.BatchRecord) (bool, error) {
		if !isOpen(r) {
			return false, fmt.Errorf("batch %s is over: %w", id, batch.ErrState)
		}
		write := r.Reason != reason
		r.Reason = reason
		return write, nil
	})
	return translate(err)
}
