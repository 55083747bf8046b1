// Command countlines reads one Go source file from standard input and prints a
// summary of it as one line of JSON. It runs natively and, built with
// GOOS=wasip1 GOARCH=wasm, as a WebAssembly function. Built with
// -buildmode=c-shared as well its method is summarize, and its calls begin
// from a snapshot.
package main

import (
	"io"
	"os"

	"github.com/futura-run/futura/examples/wasm/countlines/summary"
)

func main() { os.Exit(int(summarize())) }

// declare has each call of a method begin with the state of the program after it.
//
//go:wasmexport futura_snapshot
func declare() {}

// summarize returns the exit code.
//
//go:wasmexport summarize
func summarize() int32 {
	source, err := io.ReadAll(os.Stdin)
	if err == nil {
		_, err = os.Stdout.Write(append(summary.Of(source).JSON(), '\n'))
	}
	if err != nil {
		_, _ = os.Stderr.WriteString("countlines: " + err.Error() + "\n")
		return 1
	}
	return 0
}
