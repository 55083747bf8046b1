package remote

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/embedded"
)

// Environment of a child that serves until its standard input ends.
const (
	serveSocket = "FUTURA_TEST_SERVE_SOCKET"
	serveDir    = "FUTURA_TEST_SERVE_DIR" // empty for a store in memory
)

func TestMain(m *testing.M) {
	if path := os.Getenv(serveSocket); path != "" {
		if err := serveChild(path, os.Getenv(serveDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
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
