package futurestest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
)

var remind = futures.Define[string, string]("remind", futures.Delay(24*time.Hour))

// Example runs a function that is due tomorrow and fails at first, without
// waiting.
func Example() {
	test := func(t testing.TB) {
		cluster := futurestest.New(t)
		tries := 0
		cluster.Register(remind.Bind(func(_ context.Context, who string) (string, error) {
			if tries++; tries == 1 {
				return "", errors.New("no connection")
			}
			return "reminded " + who, nil
		}))
		began := cluster.Now()
		text, err := remind.Call(context.Background(), cluster.Client, "Ada")
		fmt.Println(text, err, tries, cluster.Now().Sub(began) > 24*time.Hour)
	}
	runTest(test)
	// Output: reminded Ada <nil> 2 true
}

func ExampleCluster_Advance() {
	test := func(t testing.TB) {
		cluster := futurestest.New(t)
		cluster.Register(remind.Bind(func(_ context.Context, who string) (string, error) { return "reminded " + who, nil }))
		future, err := remind.Submit(context.Background(), cluster.Client, "Ada")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			cluster.Advance(12 * time.Hour)
			view, err := cluster.Client.Get(context.Background(), future.ID())
			fmt.Println(view.State, err)
		}
	}
	runTest(test)
	// Output:
	// delayed <nil>
	// realized <nil>
}

// runTest runs the body of an application's test outside of a test.
func runTest(test func(testing.TB)) {
	t := &exampleTB{}
	defer func() {
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
	}()
	test(t)
}

// exampleTB implements the part of testing.TB that the cluster needs.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (t *exampleTB) Helper()                   {}
func (t *exampleTB) Cleanup(fn func())         { t.cleanups = append(t.cleanups, fn) }
func (t *exampleTB) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (t *exampleTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (t *exampleTB) Fatal(a ...any)            { panic(fmt.Sprint(a...)) }

// A function runs as on a peer whose first result was lost: it has no client, and runs again.
func ExampleTwice() {
	test := func(t testing.TB) {
		cluster := futurestest.New(t)
		cluster.Use(futurestest.Twice, futurestest.OnPeer)
		sent := 0
		cluster.Register(remind.Bind(func(ctx context.Context, who string) (string, error) {
			sent++
			if _, err := futures.FromContext(ctx); !errors.Is(err, futures.ErrOutsideFunction) {
				return "", errors.New("a peer has no client")
			}
			return "reminded " + who, nil
		}))
		text, err := remind.Call(context.Background(), cluster.Client, "Ada")
		fmt.Println(text, err, "sent", sent, "times")
	}
	runTest(test)
	// Output: reminded Ada <nil> sent 2 times
}
