package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/internal/socket"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// ObjectOptions say where the results of futures stay that are submitted as
// objects: with this worker, until they are discarded or the worker stops. The
// store of the cluster then knows only which workers have them.
type ObjectOptions struct {
	// Memory is how many bytes they may take in memory. Defaults to 0: the worker
	// has no object store, and stores all results in the store of the cluster.
	Memory int64
	// Above is the size, in bytes, above which a result is an object. Up to it, it is
	// stored with the cluster, where it can't be lost, whatever the future asks for.
	// Defaults to 4,096, what the record of a result takes; below 0 to none.
	Above int64
	// Disk is how many bytes they may take in Dir once memory is full. Defaults to
	// 10 GiB, and to none without Dir. Dir must not be open to other users. What only
	// this worker has when it stops, and no other one takes, stays in Dir: the next worker of
	// the cluster with this Dir holds it again, and readers wait 2 min for that. A worker
	// that is killed leaves nothing.
	Disk int64
	Dir  string
	// Listen is where other machines get them: an address of this one, such as
	// "10.0.0.1:7001". Beyond loopback it needs PlainText. Defaults to a socket that
	// only this user on this machine can use.
	Listen string
	// PlainText lets Listen be seen by a network, where others can read and change
	// the objects on their way: they have no encryption. Defaults to false.
	PlainText bool
}

// sweepObjects is how often a worker drops objects that no result refers to, and
// sweptTogether how many it looks at in one read.
const (
	sweepObjectsEvery = 10 * time.Second
	sweptTogether     = 100
)

// keeper holds the results of one membership that are objects.
type keeper struct {
	cluster *fdbmodel.Cluster
	store   *objects.Store
	secret  string
	dir     string
	above   int64 // the size of the largest result that is not kept
	listens []net.Listener

	worker  layout.WorkerID
	reg     *fdbmodel.Registration
	leaving atomic.Bool // takes no more
	peers   peers       // nil for those that serve

	// mu may be taken while the store calls back, so nothing that uses the store is
	// called under it.
	mu   sync.Mutex
	held map[heldObject]holding
	uses map[objects.Hash]int
	kept int64 // how many results have become objects
	// fetches are the objects that are on their way into the store for takes.
	fetches map[objects.Hash]*fetching

	room room
}

// newKeeper opens an object store, and where it is served if it is to be.
func newKeeper(c *fdbmodel.Cluster, o ObjectOptions, serves bool) (*keeper, error) {
	store, err := objects.Open(objects.Options{Memory: o.Memory, Disk: o.Disk, Dir: o.Dir})
	if err != nil {
		return nil, err
	}
	k := &keeper{cluster: c, store: store, dir: o.Dir, above: cmp.Or(o.Above, fdbmodel.MaxResultInline),
		held: map[heldObject]holding{}, uses: map[objects.Hash]int{}}
	if !serves {
		return k, nil
	}
	k.secret = rand.Text() + rand.Text()
	if err := k.listen(o); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *keeper) listen(o ObjectOptions) (err error) {
	local, err := listenLocal(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir())
	if err != nil {
		return err
	}
	k.listens = append(k.listens, local)
	if o.Listen == "" {
		return nil
	}
	if !o.PlainText && socket.LeavesMachine("tcp", o.Listen) {
		return fmt.Errorf("objects: %w: others can read and change them on the way to %s: use an address of loopback, "+
			"or --object-plain-text in a network that you trust", peer.ErrInsecure, o.Listen)
	}
	far, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("objects: listen at %s: %w", o.Listen, err)
	}
	k.listens = append(k.listens, far)
	return nil
}

// addresses returns where the objects are served, the nearest first.
func (k *keeper) addresses() string {
	var all []string
	for _, l := range k.listens {
		all = append(all, l.Addr().Network()+":"+l.Addr().String())
	}
	return strings.Join(all, " ")
}

// serve serves the objects, and drops those that no result refers to, until ctx
// ends.
func (k *keeper) serve(ctx context.Context, w *Worker) {
	var serving sync.WaitGroup
	defer serving.Wait()
	for _, l := range k.listens {
		serving.Go(func() {
			// listen refuses an address beyond this machine without ObjectOptions.PlainText.
			o := peer.ServerOptions{
				Token: k.secret, PlainText: true, Puts: true, Kept: k.holdPut, Take: k.take, Accepts: k.accepts,
				Logger: w.options.Logger,
			}
			if !w.options.NoHints {
				o.Hints = hinted{k.cluster}
			}
			if err := peer.Serve(ctx, l, k.store, o); err != nil {
				w.options.Logger.Warn("objects are not served", "address", l.Addr(), "error", err)
			}
		})
	}
	serving.Go(func() { k.comeBack(ctx, w) })
	clk := k.cluster.Clock()
	for at := clk.Now().Add(sweepObjectsEvery); ctx.Err() == nil; {
		_ = clock.Sleep(ctx, clk, sweepFullEvery)
		if now := clk.Now(); now.Before(at) && !k.room.lacking() {
			continue
		} else {
			at = now.Add(sweepObjectsEvery)
		}
		if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
			w.options.Logger.Warn("objects could not be swept; retrying", "error", err)
		}
		if k.room.lacking() {
			signal.Send(w.slots.hungry)
		}
	}
}

func (k *keeper) close() error {
	var errs []error
	for _, l := range k.listens {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, k.store.Close())...)
}

// keep stores a result as an object.
func (k *keeper) keep(ctx context.Context, id layout.ID, value []byte) (string, error) {
	k.expect(int64(len(value)))
	ref, err := k.store.PutBytes(ctx, value, objects.PutOptions{
		Kept: func(ref objects.Ref) { k.hold(id, ref.Hash, time.Time{}) },
	})
	if err != nil {
		return "", err
	}
	return ref.Hash.String(), nil
}

// read returns an object of this worker, unless it has another size than a record says.
func (k *keeper) read(object string, size int64) ([]byte, bool) {
	hash, err := objects.ParseHash(object)
	if err != nil {
		return nil, false
	}
	o, err := k.store.Open(hash)
	if err != nil {
		return nil, false
	}
	if size != o.Size() {
		_ = o.Close() // nothing of it was read
		return nil, false
	}
	value := make([]byte, size)
	_, err = io.ReadFull(o, value)
	if closed := o.Close(); err == nil {
		err = closed
	}
	return value, err == nil
}
