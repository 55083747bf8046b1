package sharing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/internal/socket"
)

// reach connects to the owner.
func (d *Database) reach(ctx context.Context) (*remote.Database, error) {
	address := remote.Address{Network: "unix", Target: usualSocket(d.dir)}
	if len(address.Target) > socket.MaxPath {
		address.Target = socketName
	}
	f, err := remote.Open(ctx, address, remote.Options{
		Connection: d.id, Dial: d.dial, OnAway: func() { signal.Send(d.away) }, GiveUpAfter: d.options.GiveUpAfter,
		DialTimeout: d.options.ConnectTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("sharing: %w", err)
	}
	return f, nil
}

var errItself = errors.New("sharing: this process takes the store over")

// dial connects to the socket of the present owner, and notes which store that is. One on a full disk
// may have left no record. A process that is about to be the owner does not reach itself: what it did so would come
// before IsOwner says what it is.
func (d *Database) dial(ctx context.Context) (net.Conn, error) {
	record, err := ReadRecord(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", record.SocketOf(d.dir))
	if err != nil {
		return nil, err
	}
	if d.owns.Load() {
		return nil, errors.Join(errItself, conn.Close())
	}
	id, err := embedded.ID(d.dir)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	d.followed.Store(&id)
	return conn, nil
}

// follow takes the store over when its owner has ended.
func (d *Database) follow(f *remote.Database) {
	for {
		select {
		case <-d.away:
		case <-d.ctx.Done():
			return
		}
		if own := d.takeOver(f); own != nil {
			d.now.Store(&role{owner: own})
			if err := f.Retire(); err != nil {
				d.options.Logger.Warn("leaving the last owner of a store", "error", err)
			}
			return
		}
	}
}

// awaySaid is after how long without an owner that answers the log says so.
const awaySaid = 2 * time.Second

// takeOver returns nil once another process has taken over, or the Database is closed.
func (d *Database) takeOver(f *remote.Database) *owner {
	began, said, saidAway := time.Now(), "", false
	var owner probe
	defer owner.close()
	for wait := tryMin; !f.IsConnected(); wait = min(2*wait, tryMax) {
		if !owner.isAlive() {
			own, err := d.own(d.ctx)
			if err == nil {
				d.options.Logger.Info("took the store over from a process that ended", "directory", d.dir,
					"after", time.Since(began).Round(time.Millisecond))
				return own
			}
			inUse := errors.Is(err, kv.ErrStoreInUse)
			if text := err.Error(); !inUse && d.ctx.Err() == nil && text != said {
				said = text
				d.options.Logger.Error("the store can't be taken over; trying again", "directory", d.dir, "error", err)
			}
			if inUse {
				record, _ := ReadRecord(d.dir)
				owner.open(record.SocketOf(d.dir))
			}
		}
		if !saidAway && time.Since(began) > awaySaid {
			saidAway = true
			record, _ := ReadRecord(d.dir)
			d.options.Logger.Warn("the process that has the store open does not answer: what needs the store waits",
				"directory", d.dir, "process", record.PID)
		}
		if clock.Sleep(d.ctx, clock.Real{}, wait) != nil {
			return nil
		}
	}
	if saidAway {
		d.options.Logger.Warn("the store is served again", "directory", d.dir,
			"after", time.Since(began).Round(time.Millisecond))
	}
	return nil
}
