package remote

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Environment of a child that serves, or that claims, until its standard input
// ends.
const (
	serveSocket = "FUTURA_TEST_SERVE_SOCKET"
	serveDir    = "FUTURA_TEST_SERVE_DIR" // empty for a store in memory
	claimSocket = "FUTURA_TEST_CLAIM_SOCKET"
)

// patience bounds the wait for what must come, on the busiest machine.
const patience = time.Minute

func TestMain(m *testing.M) {
	var err error
	if path := os.Getenv(serveSocket); path != "" {
		err = serveChild(path, os.Getenv(serveDir))
	} else if path := os.Getenv(claimSocket); path != "" {
		err = claimChild(path)
	} else if path := os.Getenv(crowdSocket); path != "" {
		err = crowdChild(path)
	} else {
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveChild serves a store of its own, and says so on standard output.
func serveChild(path, dir string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := embedded.OpenMemory(embedded.Options{})
	if dir != "" {
		var err error
		if store, err = embedded.Open(ctx, dir, embedded.Options{}); err != nil {
			return err
		}
	}
	l, err := ListenUnix(path)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := Serve(ctx, l, store, ServerOptions{}); err != nil {
		return err
	}
	return store.Close()
}

// claimChild claims what there is, and says so on standard output.
func claimChild(path string) error {
	ctx := context.Background()
	db, err := Open(ctx, Address{Network: "unix", Target: path}, Options{})
	if err != nil {
		return err
	}
	c, err := fdbmodel.Open(ctx, db, "test", fdbmodel.Options{})
	if err != nil {
		return err
	}
	worker, err := c.Register(ctx, layout.WorkerInfo{
		Functions: []string{"go:noop"}, Capacity: layout.Resources{Slots: claimed},
	})
	if err != nil {
		return err
	}
	request := fdbmodel.ClaimRequest{Free: layout.Resources{Slots: claimed}, Max: claimed}
	for taken := 0; taken < claimed; {
		answer, err := worker.Claim(ctx, request)
		if err != nil {
			return err
		}
		taken += len(answer.Futures)
	}
	fmt.Println("claimed")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
