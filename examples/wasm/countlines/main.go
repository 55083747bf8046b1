// Command countlines reads one Go source file from standard input and prints a
// summary of it as one line of JSON. It runs natively and, built with
// GOOS=wasip1 GOARCH=wasm, as a WebAssembly function.
package main

import (
	"io"
	"os"

	"github.com/futura-run/futura/examples/wasm/countlines/summary"
)

func main() {
	source, err := io.ReadAll(os.Stdin)
	if err == nil {
		_, err = os.Stdout.Write(append(summary.Of(source).JSON(), '\n'))
	}
	if err != nil {
		_, _ = os.Stderr.WriteString("countlines: " + err.Error() + "\n")
		os.Exit(1)
	}
}
