// Command counter is a method of actors: it adds the number that it reads to the state of its actor, and prints the
// sum. Built with GOOS=wasip1 GOARCH=wasm, it is a WebAssembly function.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/futura-run/futura/examples/wasm/futura"
)

func main() {
	if err := add(); err != nil {
		_, _ = os.Stderr.WriteString("counter: " + err.Error() + "\n")
		os.Exit(1)
	}
}

// add is a call of an actor, whose state is a number.
func add() error {
	var sum, more int
	if err := json.NewDecoder(os.Stdin).Decode(&more); err != nil {
		return err
	}
	if state, exists := futura.State(); exists {
		if err := json.Unmarshal(state, &sum); err != nil {
			return err
		}
	}
	state, err := json.Marshal(sum + more)
	if err != nil {
		return err
	}
	futura.SetState(state)
	_, err = fmt.Println(sum + more)
	return err
}
