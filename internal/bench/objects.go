package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// Objects are the times of an object store, each the median of some rounds. A
// large object has 10 MB, a small one 1 kB.
type Objects struct {
	// Copy is that of a copy of 10 MB in memory, Socket that of 10 MB between two
	// processes over a TCP connection on this machine, without a store.
	Copy   float64 `json:"memory_copy_ms"`
	Socket float64 `json:"bare_socket_ms"`
	// Put stores what is in memory, in a store of the process. Its ratio is that of
	// the copy's time to its own.
	Put ObjectTimes `json:"put"`
	// Within is a get from the store of the process, Between one from that of
	// another process of this host, by a mapped file. Both touch each page of the
	// content. Their ratios are to the copy.
	Within  ObjectTimes `json:"get_within_process"`
	Between ObjectTimes `json:"get_between_processes"`
	// OverSocket is a get from another process over TCP, each piece verified. Its
	// ratio is to the bare socket.
	OverSocket ObjectTimes `json:"get_over_socket"`
	// PutBetween and PutOverSocket store in another process, which hashes what it
	// gets: over a Unix socket, compared with the copy, and over TCP, compared with
	// the bare socket.
	PutBetween    ObjectTimes `json:"put_between_processes"`
	PutOverSocket ObjectTimes `json:"put_over_socket"`
}

// ObjectTimes are those of one way.
type ObjectTimes struct {
	Small float64 `json:"1kb_us"`
	Large float64 `json:"10mb_ms"`
	Ratio float64 `json:"ratio"`
}

const (
	largeObject = 10_000_000
	smallObject = 1_000
	// smallOnes is how many small objects a round is about.
	smallOnes = 50
)

// storeObjects measures the object store. It needs no cluster.
func storeObjects(ctx context.Context, r *run) (err error) {
	rounds := 40
	if r.options.Futures > 0 {
		rounds = r.options.Futures
	}
	dir, err := os.MkdirTemp("", "futura-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newObjectBench(ctx, filepath.Join(dir, "o"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	const warm = 3
	r.begin("put and get", rounds+warm)
	for round := range rounds + warm {
		if round == warm {
			clear(b.times)
		}
		if err := b.round(ctx, round); err != nil {
			return err
		}
		r.step(1)
	}
	r.report.Objects = b.report()
	return nil
}

// objectBench is a store, a client, and a process that holds objects.
type objectBench struct {
	store    *objects.Store
	client   *peer.Client
	child    *objectChild
	bare     net.Conn
	from, to []byte
	times    map[string][]time.Duration
}

func newObjectBench(ctx context.Context, dir string) (b *objectBench, err error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	token := hex.EncodeToString(secret[:])
	b = &objectBench{from: make([]byte, largeObject), to: make([]byte, largeObject), times: map[string][]time.Duration{}}
	_, _ = rand.Read(b.from)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.store, err = objects.Open(objects.Options{Memory: 64 << 20}); err != nil {
		return b, err
	}
	if b.client, err = peer.NewClient(peer.Options{Token: token}); err != nil {
		return b, err
	}
	if b.child, err = startObjectChild(ctx, dir, token); err != nil {
		return b, err
	}
	b.bare, err = new(net.Dialer).DialContext(ctx, "tcp", b.child.Bare)
	return b, err
}

func (b *objectBench) close() (err error) {
	if b.bare != nil {
		err = b.bare.Close()
	}
	if b.client != nil {
		err = errors.Join(err, b.client.Close())
	}
	if b.child != nil {
		err = errors.Join(err, b.child.stop())
	}
	if b.store != nil {
		err = errors.Join(err, b.store.Close())
	}
	return err
}

// timed calls fn n times, and notes the time of one.
func (b *objectBench) timed(name string, n int, fn func(i int) error) error {
	start := time.Now()
	for i := range n {
		if err := fn(i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	b.times[name] = append(b.times[name], time.Since(start)/time.Duration(n))
	return nil
}

// round measures everything once.
func (b *objectBench) round(ctx context.Context, round int) error {
	large := b.child.Large
	return firstError([]error{
		b.timed("copy", 1, func(int) error { copy(b.to, b.from); return nil }),
		b.within(ctx, round),
		b.opened("map", 1, func(int) (*objects.Object, error) { return b.client.Map(ctx, b.child.Unix, large) }),
		b.timed("map small", smallOnes, func(int) error { return b.get(ctx, b.child.Small, b.child.Unix) }),
		b.timed("bare", 1, func(int) error { return b.bareSocket() }),
		b.timed("socket", 1, func(int) error { return b.get(ctx, large, b.child.TCP) }),
		b.timed("socket small", smallOnes, func(int) error { return b.get(ctx, b.child.Small, b.child.TCP) }),
		b.put(ctx, "put unix", b.child.Unix),
		b.put(ctx, "put tcp", b.child.TCP),
	})
}

// within puts objects that the store does not have yet, and opens them.
func (b *objectBench) within(ctx context.Context, round int) error {
	binary.BigEndian.PutUint64(b.from, uint64(round))
	var large objects.Ref
	refs := make([]objects.Ref, smallOnes)
	err := firstError([]error{
		b.timed("put", 1, func(int) (err error) {
			large, err = b.store.PutBytes(ctx, b.from, objects.PutOptions{})
			return err
		}),
		b.opened("open", 1, func(int) (*objects.Object, error) { return b.store.Open(large.Hash) }),
		b.timed("put small", smallOnes, func(i int) (err error) {
			small := b.from[i*smallObject:][:smallObject]
			refs[i], err = b.store.PutBytes(ctx, small, objects.PutOptions{})
			return err
		}),
		b.opened("open small", smallOnes, func(i int) (*objects.Object, error) { return b.store.Open(refs[i].Hash) }),
	})
	for _, ref := range append(refs, large) {
		_, failed := b.store.Delete(ref.Hash)
		err = errors.Join(err, failed)
	}
	return err
}

func (b *objectBench) get(ctx context.Context, ref objects.Ref, address string) error {
	return b.client.Get(ctx, b.to[:ref.Size], ref, address)
}

// put stores what the other process has already, and so drops again.
func (b *objectBench) put(ctx context.Context, name, address string) error {
	put := func(content []byte) error {
		_, err := b.client.Put(ctx, address, bytes.NewReader(content), int64(len(content)))
		return err
	}
	return firstError([]error{
		b.timed(name, 1, func(int) error { return put(b.to) }),
		b.timed(name+" small", smallOnes, func(int) error { return put(b.to[:smallObject]) }),
	})
}

// bareSocket asks for as many bytes as a large object has.
func (b *objectBench) bareSocket() error {
	if _, err := b.bare.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(b.bare, b.to)
	return err
}

// opened is timed for objects, of which each page is touched. Closing them is not
// timed.
func (b *objectBench) opened(name string, n int, open func(i int) (*objects.Object, error)) error {
	all := make([]*objects.Object, 0, n)
	err := b.timed(name, n, func(i int) error {
		o, err := open(i)
		if err != nil {
			return err
		}
		all = append(all, o)
		return touch(o)
	})
	for _, o := range all {
		err = errors.Join(err, o.Close())
	}
	return err
}

// touch reads a byte of each page of an object.
func touch(o *objects.Object) error {
	whole, ok := o.Bytes()
	if !ok {
		_, err := io.Copy(io.Discard, o) // a system that can't map
		return err
	}
	var sum byte
	for i := 0; i < len(whole); i += 4096 {
		sum += whole[i]
	}
	touched = sum
	return nil
}

// touched keeps the compiler from leaving the reads out.
var touched byte

func (b *objectBench) report() *Objects {
	median := func(name string) float64 { p50, _ := quantiles(b.times[name]); return p50 }
	o := &Objects{Copy: median("copy"), Socket: median("bare")}
	times := func(large, small string, base float64) ObjectTimes {
		t := ObjectTimes{Large: median(large), Small: round(1000*median(small), 1)}
		t.Ratio = round(base/t.Large, 4)
		return t
	}
	o.Put = times("put", "put small", o.Copy)
	o.Within = times("open", "open small", o.Copy)
	o.Between = times("map", "map small", o.Copy)
	o.OverSocket = times("socket", "socket small", o.Socket)
	o.PutBetween = times("put unix", "put unix small", o.Copy)
	o.PutOverSocket = times("put tcp", "put tcp small", o.Socket)
	return o
}
