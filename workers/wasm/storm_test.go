package wasm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStorm mixes good calls with ones that end in every way, many at a time,
// and asserts that each ends as itself.
func TestStorm(t *testing.T) {
	t.Parallel()
	calls := 30
	if long {
		calls = 1500
	}
	loop := printingThen("here", endless()).module()
	shared := of("spy", spy(true))
	method := func(name string) Invocation {
		inv := shared
		inv.Method, inv.Stdin = name, []byte("mine")
		return inv
	}
	grow := starting(1, code(countTo(5000, 0, constant(1), growMemory, drop), unreachable)).module()
	inBoth(t, Config{PoolSize: 3, LoadedModules: 3}, func(t *testing.T, e *Executor) {
		var group sync.WaitGroup
		for caller := range 6 {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			group.Go(func() {
				for range calls {
					n := random.IntN(10)
					text := fmt.Sprint("text ", n)
					want, inv, stdout := "", of(text, printing(1, 100, text)), strings.Repeat(text, 100)
					ctx, cancel := context.WithCancel(context.Background())
					switch n {
					case 0:
						want, inv = KindTimeout, of("loop", loop)
						inv.Timeout = time.Duration(1+random.IntN(20)) * time.Millisecond
					case 1:
						want, inv = KindCancelled, of("loop", loop)
						time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, cancel)
					case 2:
						want, inv = KindMemory, of("grow", grow)
					case 3:
						want, inv = KindUnloadable, of("none", []byte("none"))
					case 4:
						want, inv = KindPanic, method("a trap")
					case 5, 6:
						inv, stdout = method("trace"), ""
					case 7: // may return before it is cancelled
						inv = method("content of memory")
						time.AfterFunc(time.Duration(random.IntN(200))*time.Microsecond, cancel)
					}
					out, err := e.Run(ctx, inv)
					cancel()
					if n == 7 && err != nil {
						want = KindCancelled
					} else if want == "" {
						if err != nil || n != 7 && string(out.Stdout) != stdout {
							t.Errorf("%s: %v, %d bytes", text, err, len(out.Stdout))
						}
						continue
					}
					var failure *Error
					if !errors.As(err, &failure) || failure.Kind != want {
						t.Errorf("%v instead of %s", err, want)
					}
				}
			})
		}
		group.Wait()
		stillWorks(t, e)
	})
}
