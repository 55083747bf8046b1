package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
	"github.com/futura-run/futura/protocol/peerworker"
)

// peerRounds is how often batches of peers and of workers take turns.
const peerRounds = 3

// peers compares a batch that peers run over loopback with the same that workers of the
// cluster run, and one of a tenth of the items one by one. They take turns; the medians count.
func peers(ctx context.Context, r *run) error {
	n, w := r.futures(10_000), r.workers(2)
	var ofPeers, ofWorkers []time.Duration
	for range peerRounds {
		here, err := r.batchHere(ctx, w, n, unlimited)
		if err != nil {
			return err
		}
		before := r.mark()
		there, err := r.batchThere(ctx, w, n, unlimited)
		if err != nil {
			return err
		}
		r.spent(before, n)
		ofWorkers, ofPeers = append(ofWorkers, here), append(ofPeers, there)
	}
	slices.Sort(ofPeers)
	slices.Sort(ofWorkers)
	took, base := ofPeers[len(ofPeers)/2], ofWorkers[len(ofWorkers)/2]
	r.report.FuturesPerSecond = perSecond(n, took)
	r.report.Ratio = round(base.Seconds()/took.Seconds(), 2)
	r.report.ResidentBytes = r.resident()
	if err := r.oneByOne(ctx, n, w); err != nil {
		return err
	}
	if r.options.B7S == "" {
		r.report.B7SSkipped = b7sUnset
		return nil
	}
	b, err := r.compareB7S(ctx, n, w)
	if err != nil {
		return err
	}
	b.Ratio = round(r.report.FuturesPerSecond/b.ItemsPerSecond, 1)
	r.report.B7S = b
	return nil
}

// oneByOne compares a tenth of the items, of which each worker runs one at a time.
func (r *run) oneByOne(ctx context.Context, n, workers int) error {
	n = max(n/10, 1)
	here, err := r.batchHere(ctx, workers, n, 1)
	if err != nil {
		return err
	}
	there, err := r.batchThere(ctx, workers, n, 1)
	if err == nil {
		r.report.OneByOneRatio = round(here.Seconds()/there.Seconds(), 2)
	}
	return err
}

// batchHere times a batch on workers of the cluster, and batchThere on peers.
func (r *run) batchHere(ctx context.Context, workers, n, concurrency int) (took time.Duration, err error) {
	err = r.working(ctx, workers, func() (err error) {
		took, err = r.oneBatch(ctx, n, concurrency)
		return err
	})
	return took, err
}

func (r *run) batchThere(ctx context.Context, peers, n, concurrency int) (took time.Duration, err error) {
	err = r.withPeers(ctx, peers, func() (err error) {
		took, err = r.oneBatch(ctx, n, concurrency)
		return err
	})
	return took, err
}

// withPeers calls fn while n peers run no-ops for a head, each with a host of its own on
// loopback.
func (r *run) withPeers(ctx context.Context, n int, fn func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key, err := p2p.NewKey()
	if err != nil {
		return err
	}
	host, err := p2p.Open(ctx, p2p.Options{Key: key})
	if err != nil {
		return err
	}
	o := peerhead.Options{Cluster: r.client.Cluster(), Network: host, Key: key, Logger: r.options.Log}
	head, err := peerhead.New(o)
	if err != nil {
		return errors.Join(err, host.Close())
	}
	ended := make(chan error, n+1)
	started := 1
	go func() { ended <- head.Run(ctx) }()
	head.Serve(host)
	err = host.Start()
	for range n {
		if err != nil {
			break
		}
		if err = r.startPeer(ctx, host.Addrs()[0], ended); err == nil {
			started++
		}
	}
	if err == nil {
		err = awaitPeers(ctx, r.client.Cluster(), n)
	}
	if err == nil {
		err = fn()
	}
	cancel()
	for range started {
		err = errors.Join(err, <-ended)
	}
	return errors.Join(err, host.Close())
}

// startPeer runs a peer until ctx ends, which ended is told.
func (r *run) startPeer(ctx context.Context, head string, ended chan<- error) error {
	w, err := peerworker.New(peerworker.Options{Heads: []string{head}, Logger: r.options.Log})
	if err != nil {
		return err
	}
	count := func(context.Context, []byte) ([]byte, error) { r.step(1); return nil, nil }
	if err := w.Register(noop, count); err != nil {
		return err
	}
	go func() { ended <- w.Run(ctx) }()
	return nil
}

// peersTime bounds how long peers may take to be registered.
const peersTime = 30 * time.Second

// awaitPeers waits until n workers are registered.
func awaitPeers(ctx context.Context, c *fdbmodel.Cluster, n int) error {
	for deadline := time.Now().Add(peersTime); ; {
		members, err := c.Workers(ctx)
		if err != nil || len(members) >= n {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d peers were registered within %v", len(members), n, peersTime)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
