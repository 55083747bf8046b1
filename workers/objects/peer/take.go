package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/workers/objects"
)

// Owner is what an object is put or taken for, in words that the process which
// serves understands.
type Owner [32]byte

// takeBeats is how many replies say, within PieceTimeout, that a take is under way.
const takeBeats = 3

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
	go func() { done <- o.Take(ctx, Owner(r.hash), r.count == 1) }()
	beat := time.NewTicker(o.PieceTimeout / takeBeats)
	defer beat.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				o.Logger.Debug("an object was not taken", "error", err)
				return c.say(reply{status: statusOf(err)})
			}
			return c.say(reply{status: statusOK, value: 1})
		case <-beat.C:
			if err := c.say(reply{status: statusOK}); err != nil {
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
// from where it is; alone says that it is not to stay there. It returns ErrFull and
// ErrNotFound, and takes as long as that process goes on.
func (c *Client) Take(ctx context.Context, address string, owner Owner, alone bool) error {
	r := request{op: opTake, hash: objects.Hash(owner)}
	if alone {
		r.count = 1
	}
	err := c.with(ctx, address, func(s *source) (begun bool, err error) {
		if err := s.ask(r); err != nil {
			return false, err
		}
		for {
			said, err := s.reply()
			if err != nil || said.value == 1 {
				return begun || err == nil, err
			}
			begun = true
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
