package bank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
)

// client makes payments, one after the other, and looks at accounts.
type client struct {
	name    string
	node    *node
	journal *journal
}

// journal is an append-only file outside of the store. A kill -9 takes none of its lines back.
type journal struct {
	mu   sync.Mutex
	file *os.File
	told func() // of each line that acknowledges something
}

func openJournal(path string, told func()) (*journal, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &journal{file: file, told: told}, err
}

// write writes a line. An entry without a time gets the present one.
func (j *journal) write(e *entry) error {
	if e.At == 0 {
		at, err := now()
		if err != nil {
			return err
		}
		e.At = at
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	if e.Do != entryBegin {
		j.told()
	}
	return nil
}

// now returns the monotonic time of the machine, which no process moves, in nanoseconds.
func now() (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano(), err
}

// run makes payments until the process is killed, and looks at accounts now and then.
func (c *client) run(ctx context.Context) error {
	for n := 0; ; n++ {
		var err error
		switch rand.IntN(24) {
		case 0:
			err = c.survey(ctx)
		case 1, 2, 3:
			err = c.look(ctx)
		default:
			from, step := rand.IntN(accounts), 1+rand.IntN(accounts-1)
			err = c.pay(ctx, payment{Name: fmt.Sprint(c.name, ".", n), From: from, To: (from + step) % accounts,
				Amount: 1 + rand.IntN(20), Sent: rand.IntN(2) == 0})
		}
		if err != nil && !unknown(err) {
			return err
		}
	}
}

// unknown reports whether an error leaves open what has happened: the call may go on.
func unknown(err error) bool {
	return errors.Is(err, kv.ErrUnknownResult) || errors.Is(err, kv.ErrUnavailable)
}

func (c *client) survey(ctx context.Context) error {
	began, err := now()
	if err != nil {
		return err
	}
	s, err := surveyor.Call(ctx, c.node.client, accounts)
	if err != nil {
		return err
	}
	return c.journal.write(&entry{Do: entrySurvey, Survey: s, Began: began})
}

func (c *client) look(ctx context.Context) error {
	n := rand.IntN(accounts)
	began, err := now()
	if err != nil {
		return err
	}
	a, _, err := kept.Read(ctx, c.node.client, accountKey(n))
	if err != nil {
		return err
	}
	return c.journal.write(&entry{Do: entryRead, Account: n, Seen: a.seen(), Began: began})
}

func (c *client) pay(ctx context.Context, p payment) error {
	if err := c.journal.write(&entry{Do: entryBegin, Name: p.Name, Payment: p}); err != nil {
		return err
	}
	return c.finish(ctx, &tale{payment: p})
}

// finish makes a payment, or finds out what has come of it: its name is the key of its call.
func (c *client) finish(ctx context.Context, p *tale) error {
	if p.paidAt == 0 {
		var err error
		if p.Sent {
			p.paid, err = pay.Call(ctx, c.node.client, accountKey(p.From), p.payment, futures.Key(p.Name))
		} else {
			p.paid, err = transfer.Call(ctx, c.node.client, p.payment, futures.Key(p.Name))
		}
		if err != nil {
			return fmt.Errorf("payment %s: %w", p.Name, err)
		}
		if err := c.journal.write(&entry{Do: entryPaid, Name: p.Name, Paid: p.paid}); err != nil {
			return err
		}
	}
	if !p.Sent || p.paid.Refused {
		return nil
	}
	came, err := receive.Of(c.node.client.Future(p.paid.Receipt)).Await(ctx)
	if err != nil {
		return fmt.Errorf("payment %s is on its way: %w", p.Name, err)
	}
	return c.journal.write(&entry{Do: entryCame, Name: p.Name, Seen: came})
}
