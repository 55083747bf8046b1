// Command futura is a durable futures cluster in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/futura-run/futura/workers/wasm"
)

// version is set by the linker.
var version = "dev"

func main() {
	wasm.ChildMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
