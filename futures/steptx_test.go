package futures_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/workers"
)

var (
	stepTxLedger = futures.DefineActor[int]("steptx")
	stepTxAdd    = futures.DefineMethod(stepTxLedger, "add", func(_ context.Context, total *int, by int) (int, error) {
		*total += by
		return *total, nil
	})
	stepTxOrder = []byte("order")
)

// TestAStepWithEffects has a step write a row, submit a future and call an actor, in a function whose first
// attempt fails after that: all of it is there once.
func TestAStepWithEffects(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	note := futures.Define[int, string]("note")
	var count counter
	cluster.Register(stepTxAdd.Bind())
	cluster.Register(note.Bind(func(context.Context, int) (string, error) {
		count.add("note")
		return "noted", nil
	}))
	cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
		at := count.add("attempt")
		id, err := futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
			count.add("step")
			tx.Set(stepTxOrder, []byte("placed"))
			call, err := stepTxAdd.Task("a", 5)
			if err != nil {
				return "", err
			}
			one, err := note.Task(1)
			if err != nil {
				return "", err
			}
			all, err := tx.Submit(ctx, call, one)
			if err != nil {
				return "", err
			}
			return all[1].ID().String(), nil
		})
		if err != nil || at < 3 {
			return "", errors.Join(err, errOnce)
		}
		return id, nil
	}))
	// The first call of a type makes its lanes, which would have the step run again.
	_, err := stepTxAdd.Call(t.Context(), cluster.Client, "a", 0)
	require.NoError(t, err)
	f, err := durable.Submit(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	out, err := f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, count.runs("attempt"))
	require.Equal(t, 1, count.runs("step"))
	id, err := futures.ParseID(out)
	require.NoError(t, err)
	_, err = cluster.Client.Future(id).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, count.runs("note"))
	total, err := stepTxAdd.Call(t.Context(), cluster.Client, "a", 0)
	require.NoError(t, err)
	require.Equal(t, 5, total)
	require.NoError(t, cluster.Client.Cluster().View(t.Context(), func(tx kv.Attempt) error {
		value, err := tx.Get(stepTxOrder).Wait(t.Context())
		require.Equal(t, "placed", string(value))
		return err
	}))
	names, unused := stepNames(t, cluster.Client, f.ID())
	require.Equal(t, []string{"order"}, names)
	require.Empty(t, unused)
}

// TestAStepWithEffectsThatFails writes nothing, and its retries do.
func TestAStepWithEffectsThatFails(t *testing.T) {
	t.Parallel()
	var count counter
	_, _, out, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		return futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
			was, err := tx.Get(stepTxOrder).Wait(ctx)
			if err != nil {
				return "", err
			}
			tx.Set(stepTxOrder, []byte("placed"))
			if count.add("step") < 3 {
				return "", errOnce
			}
			return "was " + string(was), nil
		}, futures.StepRetries(5, 0, 0))
	})
	require.NoError(t, err)
	require.Equal(t, "was ", out)
	require.Equal(t, 3, count.runs("step"))
}

// wrongs is an error of a type that can't be compared.
type wrongs []string

func (w wrongs) Error() string { return strings.Join(w, ", ") }

// TestAStepWithEffectsFailsInAnyWay: with an error that can't be compared, which says that it is permanent.
func TestAStepWithEffectsFailsInAnyWay(t *testing.T) {
	t.Parallel()
	var count counter
	_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
		return futures.StepTx(ctx, "order", func(context.Context, *futures.Tx) (string, error) {
			count.add("step")
			return "", workers.Permanent(wrongs{"no name", "no price"})
		})
	})
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindError, failed.Kind)
	require.Equal(t, "no name, no price", failed.Message)
	require.Equal(t, 1, count.runs("step"))
}

// writes is the code of a step that writes by its transaction, and returns nothing.
func writes(write func(*futures.Tx)) func(context.Context, *futures.Tx) (string, error) {
	return func(_ context.Context, tx *futures.Tx) (string, error) {
		write(tx)
		return "", nil
	}
}

// TestAStepWithEffectsOfARefusedSubmit fails with what was refused, also if its code goes on: the attempt fails with it
// too, or its function decides.
func TestAStepWithEffectsOfARefusedSubmit(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	cluster.Register("taken", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	task := futures.Task{Function: "go:taken", Delay: time.Hour, Unique: &futures.Unique{Key: "k"}}
	_, err := cluster.Client.Submit(t.Context(), task)
	require.NoError(t, err)
	var count counter
	cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
		_, err := futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
			count.add("step")
			_, err := tx.Submit(ctx, task)
			require.ErrorIs(t, err, futures.ErrNotUnique)
			return "there is one", nil
		})
		if errors.Is(err, futures.ErrNotUnique) && count.runs("step") == 2 {
			return "refused", nil
		}
		return "", err
	}))
	f, err := durable.Submit(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	out, err := f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "refused", out)
	require.Equal(t, 2, count.runs("step"))
	row, err := cluster.Client.Cluster().Get(t.Context(), f.ID())
	require.NoError(t, err)
	require.Equal(t, 1, row.Attempts.Failed, "the first attempt counts")
}

// TestAStepInAStepWithEffects is refused also by the context of the function.
func TestAStepInAStepWithEffects(t *testing.T) {
	t.Parallel()
	_, _, _, err := runDurable(t, func(outer context.Context, _ int) (string, error) {
		return futures.StepTx(outer, "order", func(context.Context, *futures.Tx) (string, error) {
			return futures.StepTx(outer, "inner", writes(func(*futures.Tx) {}))
		})
	})
	require.ErrorContains(t, err, "a step in a step")
}

// TestAStepThatKeepsItsTransactionForTooLong runs again, since its process or the store may have stood still, and
// is told how long a store keeps it when that happens each time.
func TestAStepThatKeepsItsTransactionForTooLong(t *testing.T) {
	t.Parallel()
	for _, long := range []int{1, 2, 3} {
		for name, end := range map[string]func(context.Context) error{
			"that its context has ended": context.Context.Err, "nothing": func(context.Context) error { return nil },
		} {
			t.Run(fmt.Sprint(long, " times, and says ", name), func(t *testing.T) {
				t.Parallel()
				var count counter
				var cluster *futurestest.Cluster
				cluster = futurestest.New(t)
				cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
					count.add("attempt")
					return futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
						tx.Set(stepTxOrder, []byte("placed"))
						if count.add("step"); count.runs("step") <= long {
							cluster.Elapse(kv.TxLifetime)
						}
						return "placed", end(ctx)
					})
				}))
				out, err := durable.Call(t.Context(), cluster.Client, 1)
				require.Equal(t, [2]int{1, min(long+1, 3)}, [2]int{count.runs("attempt"), count.runs("step")})
				if long < 3 {
					require.NoError(t, err)
					require.Equal(t, "placed", out)
					return
				}
				require.ErrorContains(t, err, "took 5s with its transaction, and as long 2 times before; the store keeps it")
			})
		}
	}
}

// TestAStepWithEffectsCallsATypeThatIsNew submits the first call of a type of actors, whose lanes there are not yet.
func TestAStepWithEffectsCallsATypeThatIsNew(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	cluster.Register(stepTxAdd.Bind())
	cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
		return futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
			call, err := stepTxAdd.Task("new", 5)
			if err == nil {
				_, err = tx.Submit(ctx, call)
			}
			return "", err
		})
	}))
	_, err := durable.Call(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	total, err := stepTxAdd.Call(t.Context(), cluster.Client, "new", 0)
	require.NoError(t, err)
	require.Equal(t, 5, total)
}

// TestAStepWaitsForACallInLine calls an actor twice in one transaction, so that the second call is in line, and
// submits a future that runs after it.
func TestAStepWaitsForACallInLine(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	note := futures.Define[int, int]("note")
	cluster.Register(stepTxAdd.Bind())
	cluster.Register(note.Bind(func(ctx context.Context, _ int) (int, error) {
		client, err := futures.FromContext(ctx)
		if err != nil {
			return 0, err
		}
		return stepTxAdd.Call(ctx, client, "a", 0)
	}))
	cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
		return futures.StepTx(ctx, "order", func(ctx context.Context, tx *futures.Tx) (string, error) {
			call, err := stepTxAdd.Task("a", 5)
			if err != nil {
				return "", err
			}
			last := &futures.Future{}
			for range 2 {
				made, err := tx.Submit(ctx, call)
				if err != nil {
					return "", err
				}
				last = made[0]
			}
			after, err := note.Task(1)
			if err != nil {
				return "", err
			}
			after.After = []futures.ID{last.ID()}
			made, err := tx.Submit(ctx, after)
			if err != nil {
				return "", err
			}
			return made[0].ID().String(), nil
		})
	}))
	out, err := durable.Call(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	id, err := futures.ParseID(out)
	require.NoError(t, err)
	total, err := note.Of(cluster.Client.Future(id)).Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 10, total)
}

// TestAStepWritesRowsOfItsOwn writes in each way that there is, keys of the application and Futura's.
func TestAStepWritesRowsOfItsOwn(t *testing.T) {
	t.Parallel()
	own, stamped := layout.AllClusters(), make([]byte, 10)
	key := func(prefix []byte) []byte { return append(bytes.Clone(prefix), "/row"...) }
	for name, write := range map[string]func(tx *futures.Tx, prefix []byte){
		"set":        func(tx *futures.Tx, prefix []byte) { tx.Set(key(prefix), nil) },
		"clear":      func(tx *futures.Tx, prefix []byte) { tx.Clear(key(prefix)) },
		"clear some": func(tx *futures.Tx, prefix []byte) { tx.ClearRange(kv.Prefix(key(prefix))) },
		"atomic":     func(tx *futures.Tx, prefix []byte) { tx.Atomic(kv.Add, key(prefix), []byte{1}) },
		"stamped key": func(tx *futures.Tx, prefix []byte) {
			tx.SetVersionstampedKey(append(key(prefix), stamped...), len(key(prefix)), nil)
		},
		"stamped value":  func(tx *futures.Tx, prefix []byte) { tx.SetVersionstampedValue(key(prefix), stamped, 0) },
		"conflict":       func(tx *futures.Tx, prefix []byte) { tx.AddWriteConflictKey(key(prefix)) },
		"conflict range": func(tx *futures.Tx, prefix []byte) { tx.AddWriteConflictRange(kv.Prefix(key(prefix))) },
	} {
		for _, begin := range [][]byte{own.Begin, []byte("row")} {
			_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
				return futures.StepTx(ctx, "order", writes(func(tx *futures.Tx) { write(tx, begin) }))
			})
			if begin[0] == 'r' {
				require.NoError(t, err, name)
				continue
			}
			require.ErrorContains(t, err, "which is Futura's own", name)
		}
	}
	for _, beside := range []kv.Range{{Begin: []byte{0}, End: own.Begin}, {Begin: own.End, End: []byte{0xff}}} {
		_, _, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
			return futures.StepTx(ctx, "order", writes(func(tx *futures.Tx) { tx.ClearRange(beside) }))
		})
		require.NoError(t, err)
	}
}

func TestAStepWithEffectsRefuses(t *testing.T) {
	t.Parallel()
	for want, fn := range map[string]func(context.Context, *futures.Tx) (string, error){
		"at most 4096": func(context.Context, *futures.Tx) (string, error) { return strings.Repeat("x", 5000), nil },
		"a step in step order": func(ctx context.Context, _ *futures.Tx) (string, error) {
			return futures.Step(ctx, "inner", func(context.Context) (string, error) { return "", nil })
		},
		"actors and sends in a step": func(ctx context.Context, _ *futures.Tx) (string, error) {
			_, err := futures.Send(ctx, futures.Task{Function: "go:f"})
			return "", err
		},
		"value is longer": writes(func(tx *futures.Tx) { tx.Set(stepTxOrder, make([]byte, kv.MaxValueSize+1)) }),
		"key is longer":   writes(func(tx *futures.Tx) { tx.Set(make([]byte, kv.MaxKeySize+1), nil) }),
		"transaction is larger": writes(func(tx *futures.Tx) {
			for i := range byte(kv.MaxTxSize/kv.MaxValueSize + 1) {
				tx.Set([]byte{'r', i}, make([]byte, kv.MaxValueSize))
			}
		}),
		"outside of the legal range": writes(func(tx *futures.Tx) { tx.Set([]byte{0xff, 'x'}, nil) }),
		"Futura's own":               writes(func(tx *futures.Tx) { tx.Set(layout.NewKeyspace("default").Config(), nil) }),
		`the key ("futura"`:          writes(func(tx *futures.Tx) { tx.ClearRange(layout.AllClusters()) }),
		"which is Futura's own":      writes(func(tx *futures.Tx) { tx.ClearRange(kv.Range{End: []byte{0xff}}) }),
		"commits it by itself": func(ctx context.Context, tx *futures.Tx) (string, error) {
			tx.Set(stepTxOrder, []byte("placed"))
			_, err := tx.Commit(ctx)
			return "", err
		},
		"sets its read version": writes(func(tx *futures.Tx) { tx.SetReadVersion(1) }),
		"cancels it: return":    writes(func(tx *futures.Tx) { tx.Cancel() }),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			var count counter
			cluster, f, _, err := runDurable(t, func(ctx context.Context, _ int) (string, error) {
				if count.add("attempt") > 3 {
					return "", workers.Permanent(errors.New("again and again"))
				}
				return futures.StepTx(ctx, "order", fn)
			})
			require.ErrorContains(t, err, want)
			require.Equal(t, 1, count.runs("attempt"), "it fails for good")
			names, _ := stepNames(t, cluster.Client, f.ID())
			require.Empty(t, names)
			require.NoError(t, cluster.Client.Cluster().View(t.Context(), func(tx kv.Attempt) error {
				value, err := tx.Get(stepTxOrder).Wait(t.Context())
				require.Nil(t, value)
				return err
			}))
		})
	}
	_, err := futures.StepTx(t.Context(), "order", func(context.Context, *futures.Tx) (int, error) { return 0, nil })
	require.ErrorIs(t, err, futures.ErrOutsideFunction)
}

// TestAnAttemptThatRunsTwiceFindsItsSteps has the second run of an attempt find what the first one has recorded.
func TestAnAttemptThatRunsTwiceFindsItsSteps(t *testing.T) {
	t.Parallel()
	var count counter
	cluster := futurestest.New(t)
	cluster.Use(futurestest.Twice)
	cluster.Register(durable.Bind(func(ctx context.Context, _ int) (string, error) {
		count.add("run")
		one, err := count.step(ctx, "charge")
		if err != nil {
			return "", err
		}
		two, err := futures.StepTx(ctx, "note", func(context.Context, *futures.Tx) (string, error) {
			return fmt.Sprint("note", count.add("note")), nil
		})
		return one + two, err
	}))
	f, err := durable.Submit(t.Context(), cluster.Client, 1)
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, count.runs("run"))
	require.Equal(t, [2]int{1, 1}, [2]int{count.runs("charge"), count.runs("note")})
	names, unused := stepNames(t, cluster.Client, f.ID())
	require.Equal(t, []string{"charge", "note"}, names)
	require.Empty(t, unused)
}
