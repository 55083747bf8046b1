// Command primes prints how many prime numbers there are below a number, its argument. It counts
// them by the million, each as a step: an attempt that is cut off is followed by one that goes on
// where it was. It runs natively and, built with GOOS=wasip1 GOARCH=wasm, as a WebAssembly function.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/futura-run/futura/examples/wasm/futura"
)

const million = 1_000_000

func main() {
	err := errors.New("give one number")
	if len(os.Args) == 2 {
		err = run(os.Args[1])
	}
	if err != nil {
		_, _ = os.Stderr.WriteString("primes: " + err.Error() + "\n")
		os.Exit(1)
	}
}

func run(argument string) error {
	below, err := strconv.Atoi(argument)
	if err != nil {
		return err
	}
	total := 0
	for from := 0; from < below; from += million {
		primes, err := count(from, min(from+million, below))
		if err != nil {
			return err
		}
		total += primes
	}
	_, err = fmt.Println(total)
	return err
}

// count counts the primes of a range, unless an attempt before this one has.
func count(from, below int) (int, error) {
	counted, err := futura.Step(fmt.Sprint("from ", from), func() ([]byte, error) {
		primes := 0
		for n := max(from, 2); n < below; n++ {
			if isPrime(n) {
				primes++
			}
		}
		return strconv.AppendInt(nil, int64(primes), 10), nil
	})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(counted))
}

func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}
