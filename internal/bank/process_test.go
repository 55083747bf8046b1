package bank

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

// Environment variables of a process that a test starts.
const (
	processVariable = "FUTURA_BANK_PROCESS" // its name
	storeVariable   = "FUTURA_BANK_STORE"
	clusterVariable = "FUTURA_BANK_CLUSTER"
	journalVariable = "FUTURA_BANK_JOURNAL"
	clientsVariable = "FUTURA_BANK_CLIENTS" // how many it has; with none, it has the store open and does nothing else
	aheadVariable   = "FUTURA_BANK_AHEAD"   // by how many seconds its clock is ahead
)

// Words that a process says.
const (
	wordReady = "ready"
	wordOwner = "owner" // it is the process of the store
	wordTold  = "told"  // a client was told something
)

// TestMain is the main of a process that a test starts, too.
func TestMain(m *testing.M) {
	if os.Getenv(processVariable) != "" {
		fmt.Fprintln(os.Stderr, beProcess(context.Background()))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, ignored()...)
}

// beProcess does what it is for until it is killed, or its standard input ends.
func beProcess(ctx context.Context) error {
	clients, err := strconv.Atoi(os.Getenv(clientsVariable))
	if err != nil {
		return err
	}
	ahead, err := strconv.ParseInt(os.Getenv(aheadVariable), 10, 64)
	if err != nil {
		return err
	}
	c := &movedClock{}
	c.ahead.Store(ahead)
	go obey(c)
	if clients == 0 {
		return keepStore(ctx)
	}
	j, err := openJournal(os.Getenv(journalVariable), func() { say(wordTold) })
	if err != nil {
		return err
	}
	n, err := openNode(ctx, os.Getenv(storeVariable), os.Getenv(clusterVariable), c)
	if err != nil {
		return err
	}
	say(wordReady)
	var all sync.WaitGroup
	errs := make(chan error, clients+2)
	for i := range clients {
		one := &client{name: fmt.Sprint(os.Getenv(processVariable), ".", i), node: n, journal: j}
		all.Go(func() { errs <- one.run(ctx) })
	}
	go func() { errs <- n.watch(j) }()
	select {
	case err := <-errs:
		return err
	case err := <-n.ended:
		return fmt.Errorf("the worker has ended: %w", err)
	}
}

// obey sets the clock as it is told, until there is nobody to tell.
func obey(c *movedClock) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if ahead, err := strconv.ParseInt(in.Text(), 10, 64); err == nil {
			c.ahead.Store(ahead)
		}
	}
	os.Exit(2)
}

func say(word string) { fmt.Println(word) }

// keepStore has an embedded store open, for itself or through another process.
func keepStore(ctx context.Context) error {
	db, err := kvopen.Open(ctx, os.Getenv(storeVariable), kvopen.Options{Share: true})
	if err != nil {
		return err
	}
	say(wordReady)
	for tick := time.NewTicker(20 * time.Millisecond); !owns(db); <-tick.C {
	}
	say(wordOwner)
	select {}
}

// watch says when the process comes to have the store, and notes when its worker was declared dead and is a member
// again.
func (n *node) watch(j *journal) error {
	owner, id := false, n.worker.ID()
	for range time.NewTicker(20 * time.Millisecond).C {
		if is := owns(n.db); is != owner {
			if !is {
				return errors.New("a process that had the store has lost it")
			}
			owner = true
			say(wordOwner)
		}
		if present := n.worker.ID(); present != id {
			id = present
			if err := j.write(&entry{Do: entryAgain}); err != nil {
				return err
			}
		}
	}
	return nil
}
