package wasm_test

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/workers/wasm"
)

// A module runs without files, network and clock, within limits.
func ExampleExecutor_Run() {
	ctx := context.Background()
	executor, err := wasm.New(ctx, wasm.Config{Isolation: wasm.IsolationInProcess})
	if err != nil {
		panic(err)
	}
	defer executor.Close(ctx)
	// A module that exports a function answer, which returns 0, its exit code.
	module := []byte("\x00asm\x01\x00\x00\x00" + "\x01\x05\x01\x60\x00\x01\x7f" + "\x03\x02\x01\x00" +
		"\x07\x0a\x01\x06answer\x00\x00" + "\x0a\x06\x01\x04\x00\x41\x00\x0b")
	outcome, err := executor.Run(ctx, wasm.Invocation{
		CID:    "a name of these bytes",
		Module: func(context.Context) ([]byte, error) { return module, nil },
		Method: "answer",
	})
	fmt.Println(outcome.ExitCode, err)
	// Output: 0 <nil>
}
