package kvopen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/internal/socket"
)

// openHeld opens a store that another process has open through that one, if it
// shares it. Else the error says what can be done, and served whether that process
// shares the store and so has it open until it is stopped. It is remote.ErrSilent if that does not answer in time.
func openHeld(ctx context.Context, dir string, inUse error, e embedded.Options, o Options,
) (db kv.Database, served bool, err error) {
	owner, err := sharing.ReadRecord(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		served, _ = socket.Answers(owner.SocketOf(dir))
	}
	switch {
	case !served && (err != nil || owner.Socket == ""):
		return nil, false, fmt.Errorf("%w: another process has it open and does not share it: stop that process, or have "+
			"it share the store, as futura dev and programs with futura.Open do", inUse)
	case o.Exclusive && owner.PID == os.Getpid():
		return nil, served, fmt.Errorf("%w: this process has it open: use that store, close it first, or name another one",
			inUse)
	case o.Exclusive:
		return nil, served, fmt.Errorf("%w: %s has it open: stop that process, or name another store", inUse,
			processOf(owner))
	}
	if !served && o.InUseWait > 0 {
		err = errNoAnswer
	} else if o.TakeOver {
		db, err = sharing.Follow(ctx, dir, sharing.Options{Embedded: e, GiveUpAfter: o.GiveUpAfter,
			ConnectTimeout: o.ConnectTimeout, Logger: o.Logger})
	} else {
		db, err = openRemote(ctx, remoteName{address: remote.Address{Network: "unix", Target: owner.SocketOf(dir)}}, o)
	}
	if errors.Is(err, remote.ErrSilent) {
		return nil, false, err
	}
	if err != nil {
		served = served && !errors.Is(err, kv.ErrUnavailable) // it has ended since it answered
		return nil, served, fmt.Errorf("%w: %s should serve it: %w: if that process is gone, stop the program "+
			"that has it open instead", inUse, processOf(owner), err)
	}
	return db, true, nil
}

// processOf names the owner, which is not known where a full disk took no record.
func processOf(owner sharing.Record) string {
	if owner.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", owner.PID)
}

var errNoAnswer = errors.New("it does not answer")
