package peer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/workers/objects"
)

// Owner is what an object is put or taken for, in words that the process which
// serves understands.
type Owner [32]byte

// TakeOptions say how an object is taken.
type TakeOptions struct {
	// Alone says that it is not to stay where it is. Defaults to false.
	Alone bool
	// Arrived is told how many bytes have arrived. Defaults to nobody.
	Arrived func(bytes int64)
}

const (
	// takeBeats is how many replies say, within PieceTimeout, that a take is under way.
	takeBeats = 3
	// takeNews is how often they are sent at least.
	takeNews = 250 * time.Millisecond
)

// room says how much room there is.
func (c *link) room() error {
	if !c.server.options.Puts {
		return c.say(reply{status: statusNoPuts})
	}
	if err := c.server.options.accepts(); err != nil {
		return c.say(reply{status: statusOf(err)})
	}
	return c.say(reply{status: statusOK, value: uint64(c.server.store.Stats().Free)})
}

// accepts returns why no objects come in.
func (o *ServerOptions) accepts() error {
	if o.Accepts == nil {
		return nil
	}
	return o.Accepts()
}

// take gets what belongs to an owner. It ends when the client is gone.
func (c *link) take(ctx context.Context, r request) error {
	o := c.server.options
	if o.Take == nil {
		return c.say(reply{status: statusNoPuts})
	}
	if err := o.accepts(); err != nil {
		return c.say(reply{status: statusOf(err)})
	}
	if !c.waitForBuffer(ctx) {
		return c.say(reply{status: statusBusy})
	}
	defer func() { <-c.server.buffers }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	var arrived atomic.Int64
	options := TakeOptions{Alone: r.count == 1, Arrived: arrived.Store}
	go func() { done <- o.Take(ctx, Owner(r.hash), options) }()
	beat := time.NewTicker(min(takeNews, o.PieceTimeout/takeBeats))
	defer beat.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				o.Logger.Debug("an object was not taken", "error", err)
				return c.say(reply{status: statusOf(err)})
			}
			return c.say(reply{status: statusOK, value: takeDone})
		case <-beat.C:
			if err := c.say(reply{status: statusOK, value: uint64(arrived.Load())}); err != nil {
				cancel()
				<-done
				return err
			}
		}
	}
}

// Room returns how many bytes there is room for in the store that is served at an
// address.
func (c *Client) Room(ctx context.Context, address string) (free int64, err error) {
	err = c.with(ctx, address, func(s *source) (begun bool, err error) {
		if err := s.ask(request{op: opRoom}); err != nil {
			return false, err
		}
		r, err := s.reply()
		free = int64(min(r.value, objects.MaxSize))
		return err == nil, err
	})
	if err != nil {
		return 0, fmt.Errorf("objects: room: %w", sourceError(address, err))
	}
	return free, nil
}

// Take has the process at an address get what belongs to an owner into its store,
// from where it is. Arrived is called before Take returns, several times a second, with
// what that process says. Take returns ErrFull and ErrNotFound, and takes as long as that
// process goes on.
func (c *Client) Take(ctx context.Context, address string, owner Owner, o TakeOptions) error {
	r := request{op: opTake, hash: objects.Hash(owner)}
	if o.Alone {
		r.count = 1
	}
	err := c.with(ctx, address, func(s *source) (begun bool, err error) {
		if err := s.ask(r); err != nil {
			return false, err
		}
		for {
			said, err := s.reply()
			if err != nil || said.value == takeDone {
				return begun || err == nil, err
			}
			begun = true
			if o.Arrived != nil {
				o.Arrived(int64(min(said.value, objects.MaxSize)))
			}
		}
	})
	if err != nil {
		return fmt.Errorf("objects: take: %w", sourceError(address, err))
	}
	return nil
}

// reply reads a reply, and returns an error unless it is statusOK.
func (s *source) reply() (reply, error) {
	if err := s.SetReadDeadline(time.Now().Add(s.client.options.PieceTimeout)); err != nil {
		return reply{}, err
	}
	var b [replySize]byte
	if err := readFull(s, b[:]); err != nil {
		return reply{}, err
	}
	r, err := decodeReply(&b)
	if err == nil {
		err = r.err()
	}
	return r, err
}
