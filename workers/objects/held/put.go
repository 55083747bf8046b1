package held

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// ErrNoHolder is returned when no worker takes an object.
var ErrNoHolder = errors.New("no worker takes an object")

// roomTimeout bounds how long workers are asked for their room, and maxAsked is how
// many are.
const (
	roomTimeout = 5 * time.Second
	maxAsked    = 16
)

// Holder is a worker that has room for objects.
type Holder struct {
	Worker layout.WorkerID
	// Room is how many bytes it had room for when it was asked.
	Room int64

	address string
	secret  string
}

// Holders asks those of the workers that have an object store how much room it has,
// and returns the ones that answer, the one with most room first. Of many it asks
// some. It returns ErrNoHolder if there are none.
func (r *Reader) Holders(ctx context.Context, workers []layout.WorkerInfo) ([]Holder, error) {
	var asked []layout.WorkerInfo
	for _, w := range workers {
		if w.Objects != "" {
			asked = append(asked, w)
		}
	}
	if len(asked) == 0 {
		return nil, fmt.Errorf("%w: none has an object store (futura worker --object-memory)", ErrNoHolder)
	}
	if len(asked) > maxAsked { // not always the same ones, which are full first
		rand.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
		asked = asked[:maxAsked]
	}
	bounded, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	holders, failed := make([]Holder, len(asked)), make([]error, len(asked))
	var all sync.WaitGroup
	for i := range asked {
		all.Go(func() { holders[i], failed[i] = r.ask(bounded, &asked[i]) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	holders = slices.DeleteFunc(holders, func(h Holder) bool { return h.Worker == "" })
	if len(holders) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrNoHolder, errors.Join(failed...))
	}
	slices.SortStableFunc(holders, func(a, b Holder) int { return cmp.Compare(b.Room, a.Room) })
	return holders, nil
}

// ask asks one worker, at its nearest address that answers.
func (r *Reader) ask(ctx context.Context, w *layout.WorkerInfo) (Holder, error) {
	client, done, err := r.client(string(w.Secret))
	if err != nil {
		return Holder{}, err
	}
	defer done()
	var failed error
	for _, address := range strings.Fields(w.Objects) {
		free, err := client.Room(ctx, address)
		if err == nil {
			return Holder{Worker: w.ID, Room: free, address: address, secret: string(w.Secret)}, nil
		}
		failed = errors.Join(failed, Refused(err))
	}
	return Holder{}, fmt.Errorf("worker %s: %w", w.ID, failed)
}

// Refused returns what the caller gets for an error of a worker that is asked to hold
// an object: ErrNoHolder if it has no room, results.ErrHolderGone if it stops,
// fdbmodel.ErrNotFound if there is no such object, and others as they are.
func Refused(err error) error {
	switch {
	case errors.Is(err, objects.ErrFull):
		return fmt.Errorf("%w: %w", ErrNoHolder, err)
	case errors.Is(err, objects.ErrStopping):
		return fmt.Errorf("%w: %w", results.ErrHolderGone, err)
	case errors.Is(err, objects.ErrNotFound):
		return fmt.Errorf("%w: %w", fdbmodel.ErrNotFound, err)
	}
	return err
}

// NameOf returns the name that the object with a content has.
func NameOf(content []byte) string {
	var pieces []objects.Hash
	for piece := range slices.Chunk(content, objects.PieceSize) {
		pieces = append(pieces, objects.HashPiece(piece))
	}
	return objects.RefOf(int64(len(content)), pieces).Hash.String()
}

// TakeOptions say how an object is taken.
type TakeOptions = peer.TakeOptions

// Take has a worker take the result of a future from the workers that have it. It
// returns ErrNoHolder if it has no room, results.ErrHolderGone if it stops, and
// fdbmodel.ErrNotFound if no worker has the result.
func (r *Reader) Take(ctx context.Context, to *Holder, id layout.ID, o TakeOptions) error {
	client, done, err := r.client(to.secret)
	if err != nil {
		return err
	}
	defer done()
	var owner peer.Owner
	copy(owner[:], id[:])
	err = Refused(client.Take(ctx, to.address, owner, o))
	if err != nil {
		err = fmt.Errorf("worker %s: %w", to.Worker, err)
	}
	return err
}

// Put stores what r has to say, about so many bytes, with a worker, for a future that
// has to exist within a minute. The name and the size are verified. It returns
// ErrNoHolder if there is no room, and results.ErrHolderGone if the worker stops. It
// is not tried again: r has been read.
func (r *Reader) Put(ctx context.Context, to *Holder, id layout.ID, from io.Reader, about int64,
) (object string, size int64, err error) {
	client, done, err := r.client(to.secret)
	if err != nil {
		return "", 0, err
	}
	defer done()
	var owner peer.Owner
	copy(owner[:], id[:])
	ref, err := client.PutFor(ctx, to.address, owner, from, about)
	if err = Refused(err); err != nil {
		return "", 0, fmt.Errorf("worker %s: %w", to.Worker, err)
	}
	return ref.Hash.String(), ref.Size, nil
}
