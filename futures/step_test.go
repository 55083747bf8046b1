package futures_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

var durable = futures.Define[int, string]("durable", futures.Retries(3))

var errOnce = errors.New("not yet")

// counter counts how often each step ran.
type counter struct{ sync.Map }

func (c *counter) add(name string) int {
	n, _ := c.LoadOrStore(name, new(atomic.Int64))
	return int(n.(*atomic.Int64).Add(1))
}

// runs returns how often a step ran.
func (c *counter) runs(name string) int {
	n, found := c.Load(name)
	if !found {
		return 0
	}
	return int(n.(*atomic.Int64).Load())
}

// step runs a step that returns its name.
func (c *counter) step(ctx context.Context, name string) (string, error) {
	return futures.Step(ctx, name, func(context.Context) (string, error) {
		c.add(name)
		return name, nil
	})
}

// runDurable runs one future of a function in virtual time.
func runDurable(t *testing.T, run func(context.Context, int) (string, error)) (*futurestest.Cluster,
	*futures.Typed[string], string, error,
) {
	cluster := futurestest.New(t)
	cluster.Register(durable.Bind(run))
	f, err := durable.Submit(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	out, err := f.Await(t.Context())
	return cluster, f, out, err
}

func stepNames(t *testing.T, c *futures.Client, id futures.ID) (names, unused []string) {
	all, err := c.Steps(t.Context(), id)
	require.NoError(t, err)
	for i := range all {
		require.Equal(t, i+1, all[i].Number)
		require.Equal(t, time.UTC, all[i].StartedAt.Location())
		require.Equal(t, time.UTC, all[i].At.Location())
		names = append(names, all[i].Name)
		if all[i].Unused {
			unused = append(unused, all[i].Name)
		}
	}
	return names, unused
}

func TestARecordedStepRunsOnce(t *testing.T) {
	t.Parallel()
	var count counter
	cluster, f, out, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		all := ""
		for _, name := range []string{"reserve", "charge", "charge", "ship"} {
			one, err := count.step(ctx, name)
			if err != nil {
				return "", err
			}
			all += one + " "
			if name == "ship" && count.add("attempt") < 3 {
				return "", errOnce
			}
		}
		return all, nil
	})
	require.NoError(t, err)
	require.Equal(t, "reserve charge charge ship ", out)
	require.Equal(t, []int{1, 2, 1, 3}, []int{count.runs("reserve"), count.runs("charge"), count.runs("ship"),
		count.runs("attempt")})
	names, unused := stepNames(t, cluster.Client, f.ID())
	require.Equal(t, []string{"reserve", "charge", "charge#2", "ship"}, names)
	require.Empty(t, unused)
}

// TestAFailedStepRunsAgain has a step fail: it is not recorded, and the ones before it are.
func TestAFailedStepRunsAgain(t *testing.T) {
	t.Parallel()
	var count counter
	cluster, f, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		if _, err := count.step(ctx, "reserve"); err != nil {
			return "", err
		}
		return futures.Step(ctx, "charge", func(context.Context) (string, error) {
			if count.add("charge") < 3 {
				return "", errOnce
			}
			return "paid", nil
		})
	})
	require.NoError(t, err)
	require.Equal(t, []int{1, 3}, []int{count.runs("reserve"), count.runs("charge")})
	names, _ := stepNames(t, cluster.Client, f.ID())
	require.Equal(t, []string{"reserve", "charge"}, names)
}

func TestRetriesOfAStep(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		retries, runs int
		err           error
	}{
		"as many as it needs": {5, 3, nil}, "too few": {1, 2, errOnce}, "none": {0, 1, errOnce},
		"permanent": {5, 1, workers.Permanent(errOnce)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, attempts := 0, 0
			_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
				if attempts++; attempts > 1 {
					return "", workers.Permanent(errOnce)
				}
				return futures.Step(ctx, "charge", func(context.Context) (string, error) {
					if runs++; runs < 3 {
						return "", errors.Join(errOnce, of.err)
					}
					return "paid", nil
				}, futures.StepRetries(of.retries, time.Second, time.Minute))
			})
			require.Equal(t, of.runs, runs)
			require.Equal(t, of.err == nil, err == nil, err)
		})
	}
}

// TestATimeoutOfAStepEndsItsContext leaves the function its own.
func TestATimeoutOfAStepEndsItsContext(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 1}) },
		func(w *workers.Worker) error {
			return w.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
				_, err := futures.Step(ctx, "slow", func(ctx context.Context) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				}, futures.StepTimeout(time.Millisecond))
				return fmt.Sprint(err, ctx.Err()), nil
			}))
		})
	out, err := durable.Call(t.Context(), c, 1)
	require.NoError(t, err)
	require.Equal(t, "step slow ran longer than its timeout of 1ms: context deadline exceeded: context canceled <nil>",
		out)
}

// TestCodeMayChangeBetweenAttempts has the second attempt run other code, by another name.
func TestCodeMayChangeBetweenAttempts(t *testing.T) {
	t.Parallel()
	var count counter
	cluster, f, out, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		names := []string{"old", "both"}
		first := count.add("attempt") == 1
		if !first {
			names = []string{"new", "both"}
		}
		all := ""
		for _, name := range names {
			one, err := count.step(ctx, name)
			if err != nil {
				return "", err
			}
			all += one
		}
		if first {
			return "", errOnce
		}
		return all, nil
	})
	require.NoError(t, err)
	require.Equal(t, "newboth", out)
	require.Equal(t, 1, count.runs("both"))
	names, unused := stepNames(t, cluster.Client, f.ID())
	require.Equal(t, []string{"old", "both", "new"}, names)
	require.Equal(t, []string{"old"}, unused)
}

// TestCodeMayStopHavingSteps has the second attempt ask for none.
func TestCodeMayStopHavingSteps(t *testing.T) {
	t.Parallel()
	var count counter
	cluster, f, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		if count.add("attempt") > 1 {
			return "done", nil
		}
		_, err := count.step(ctx, "old")
		return "", errors.Join(err, errOnce)
	})
	require.NoError(t, err)
	_, unused := stepNames(t, cluster.Client, f.ID())
	require.Equal(t, []string{"old"}, unused)
}

// TestAStepOfAnotherTypeFailsForGood names the step and the type.
func TestAStepOfAnotherTypeFailsForGood(t *testing.T) {
	t.Parallel()
	type receipt struct{ Amount int }
	attempts := 0
	_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		if attempts++; attempts == 1 {
			_, err := futures.Step(ctx, "charge", func(context.Context) (string, error) { return "paid", nil })
			return "", errors.Join(err, errOnce)
		}
		_, err := futures.Step(ctx, "charge", func(context.Context) (receipt, error) { return receipt{}, nil })
		return "", err
	})
	require.ErrorIs(t, err, futures.ErrFailed)
	require.ErrorContains(t, err, "step charge: 5 bytes of msgpack, recorded in attempt 1, do not decode as "+
		"futures_test.receipt")
	require.Equal(t, 2, attempts)
}

// TestASleepThatIsOverIsASleep has an attempt find the record of one that had ended when it began, even
// at the zero time.
func TestASleepThatIsOverIsASleep(t *testing.T) {
	t.Parallel()
	for _, until := range []time.Time{{}, time.Unix(0, 0), time.UnixMilli(-1), time.UnixMilli(1)} {
		attempts := 0
		cluster, f, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
			err := futures.SleepUntil(ctx, until)
			if attempts++; err == nil && attempts == 1 {
				err = errOnce
			}
			return "", err
		})
		require.NoError(t, err, until)
		require.Equal(t, 2, attempts)
		all, err := cluster.Client.Steps(t.Context(), f.ID())
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.False(t, all[0].Wake.IsZero())
	}
}

// TestASleepIsNoOtherStep has the code of the second attempt take the record of a sleep for that of a step.
func TestASleepIsNoOtherStep(t *testing.T) {
	t.Parallel()
	attempts := 0
	_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		if attempts++; attempts == 1 {
			return "", errors.Join(futures.Sleep(ctx, 0), errOnce)
		}
		return futures.Step(ctx, "sleep", func(context.Context) (string, error) { return "", nil })
	})
	require.ErrorIs(t, err, futures.ErrFailed)
	require.ErrorContains(t, err, "step sleep was recorded in attempt 1 and is a sleep: give the step another name")
	require.Equal(t, 2, attempts)
}

// TestLargeValuesOfSteps are read again as they were.
func TestLargeValuesOfSteps(t *testing.T) {
	t.Parallel()
	large, attempts := bytes.Repeat([]byte("x"), 200_000), 0
	_, _, out, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		attempts++
		value, err := futures.Step(ctx, "large", func(context.Context) ([]byte, error) {
			if attempts > 1 {
				return nil, errors.New("it runs again")
			}
			return large, nil
		})
		if err == nil && attempts == 1 {
			err = errOnce
		}
		return fmt.Sprint(bytes.Equal(value, large)), err
	})
	require.NoError(t, err)
	require.Equal(t, "true", out)
}

// TestManyValuesOfSteps are more together than a worker keeps in memory, and read again as they were.
func TestManyValuesOfSteps(t *testing.T) {
	t.Parallel()
	attempts := 0
	_, _, out, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		attempts++
		n := 0
		for i := range 300 {
			value, err := futures.Step(ctx, fmt.Sprint(i), func(context.Context) ([]byte, error) {
				if attempts > 1 {
					return nil, workers.Permanent(errors.New("it runs again"))
				}
				return bytes.Repeat([]byte{byte(i)}, 4000), nil
			})
			if err != nil {
				return "", err
			}
			if bytes.Equal(value, bytes.Repeat([]byte{byte(i)}, 4000)) {
				n++
			}
		}
		if attempts == 1 {
			return "", errOnce
		}
		return fmt.Sprint(n), nil
	})
	require.NoError(t, err)
	require.Equal(t, "300", out)
	require.Equal(t, 2, attempts)
}

// TestALongSleepEndsTheAttempt counts no attempt and holds no slot, and what the function returns
// instead of its error does not count.
func TestALongSleepEndsTheAttempt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(error) (string, error){
		"returned": func(err error) (string, error) { return "", err },
		"wrapped":  func(err error) (string, error) { return "", fmt.Errorf("sleeping: %w", err) },
		"replaced": func(error) (string, error) { return "", errOnce },
		"ignored":  func(error) (string, error) { return "too early", nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var count counter
			var began, ended time.Time
			cluster := futurestest.New(t)
			cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
				count.add("attempt")
				if _, err := count.step(ctx, "before"); err != nil {
					return "", err
				}
				if began.IsZero() {
					began = cluster.Now()
				}
				for range 2 {
					if err := futures.Sleep(ctx, 36*time.Hour); err != nil {
						_, later := count.step(ctx, "after")
						require.Error(t, later, "no step runs before the sleep is over")
						return end(err)
					}
				}
				ended = cluster.Now()
				return count.step(ctx, "after")
			}))
			out, err := durable.Call(t.Context(), cluster.Client, 1)
			require.NoError(t, err)
			require.Equal(t, "after", out)
			require.Equal(t, []int{3, 1, 1}, []int{count.runs("attempt"), count.runs("before"), count.runs("after")})
			require.GreaterOrEqual(t, ended.Sub(began), 72*time.Hour)
		})
	}
}

// TestAPermanentErrorEndsASleep is not put off, and neither is a panic.
func TestAPermanentErrorEndsASleep(t *testing.T) {
	t.Parallel()
	for kind, end := range map[futures.FailureKind]func() error{
		futures.KindError: func() error { return workers.Permanent(errOnce) },
		futures.KindPanic: func() error { panic(errOnce) },
	} {
		cluster, runs := futurestest.New(t), 0
		sleeps := futures.Define[int, string]("sleeps", futures.Retries(0))
		cluster.Register(sleeps.Bind(func(ctx context.Context, _ int) (string, error) {
			runs++
			_ = futures.SleepUntil(ctx, time.Now().Add(200*365*24*time.Hour))
			return "", end()
		}))
		_, err := sleeps.Call(t.Context(), cluster.Client, 1)
		var failed *futures.FailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, kind, failed.Kind)
		require.Contains(t, failed.Message, errOnce.Error())
		require.Equal(t, 1, runs, "not when the sleep is over")
	}
}

// TestAShortSleepYieldsTheSlot has a function sleep while another one needs the only slot.
func TestAShortSleepYieldsTheSlot(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	other := futures.Define[int, string]("other")
	woken := make(chan struct{})
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 1}) },
		func(w *workers.Worker) error {
			return errors.Join(w.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
				client, err := futures.FromContext(ctx)
				if err != nil {
					return "", err
				}
				if _, err := other.Submit(ctx, client, 1); err != nil {
					return "", err
				}
				for range 15 { // a busy machine may take longer than one sleep
					if err := futures.Sleep(ctx, 2*time.Second); err != nil {
						return "", err
					}
					select {
					case <-woken:
						return "the other one ran", nil
					default:
					}
				}
				return "the other one waits", nil
			})), w.Register(other.Bind(func(context.Context, int) (string, error) {
				close(woken)
				return "", nil
			})))
		})
	out, err := durable.Call(t.Context(), c, 1)
	require.NoError(t, err)
	require.Equal(t, "the other one ran", out)
}

// TestParallelSteps run in goroutines, and join commits.
func TestParallelSteps(t *testing.T) {
	t.Parallel()
	const width = 40
	c := newClient(t, storetest.New(t))
	var count counter
	work(t, func() (*workers.Worker, error) { return workers.New(c, workers.Options{Slots: 4}) },
		func(w *workers.Worker) error {
			return w.Register(durable.Bind(func(ctx context.Context, n int) (string, error) {
				var all sync.WaitGroup
				errs := make([]error, width)
				for i := range width {
					all.Go(func() { _, errs[i] = count.step(ctx, fmt.Sprintf("%d/%d", n, i)) })
				}
				all.Wait()
				if count.add(fmt.Sprint("attempt ", n)) < 3 {
					errs = append(errs, workers.RetryAfter(0, errOnce))
				}
				return "", errors.Join(errs...)
			}))
		})
	inputs := []int{1, 2, 3, 4, 5, 6, 7, 8}
	all, err := durable.Map(t.Context(), c, inputs)
	require.NoError(t, err)
	_, err = futures.AwaitAll(t.Context(), all)
	require.NoError(t, err)
	for i, f := range all {
		names, unused := stepNames(t, c, f.ID())
		require.Len(t, names, width)
		require.Empty(t, unused)
		for s := range width {
			require.Equal(t, 1, count.runs(fmt.Sprintf("%d/%d", inputs[i], s)))
		}
	}
}

// TestRetryGoesOnFromTheStepThatFailed, and StartOver does not.
func TestRetryGoesOnFromTheStepThatFailed(t *testing.T) {
	t.Parallel()
	var count counter
	cluster, f, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		if _, err := count.step(ctx, "reserve"); err != nil {
			return "", err
		}
		if count.add("attempt") < 3 {
			return "", workers.Permanent(errOnce)
		}
		return "done", nil
	})
	require.ErrorIs(t, err, futures.ErrFailed)
	require.NoError(t, cluster.Client.Retry(t.Context(), f.ID()))
	_, err = cluster.Client.Future(f.ID()).Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	require.Equal(t, []int{1, 2}, []int{count.runs("reserve"), count.runs("attempt")})
	require.NoError(t, cluster.Client.StartOver(t.Context(), f.ID()))
	_, err = cluster.Client.Future(f.ID()).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, []int{count.runs("reserve"), count.runs("attempt")})
	require.ErrorIs(t, cluster.Client.StartOver(t.Context(), f.ID()), futures.ErrTransition)
	_, err = cluster.Client.Steps(t.Context(), futures.ID{15: 1})
	require.ErrorIs(t, err, futures.ErrNotFound)
}
