package kvtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest/reference"
	"github.com/stretchr/testify/require"
)

func programCases() []testCase {
	return []testCase{{name: "Programs", exact: true, earlier: true, run: func(b *bundle) {
		ComparePrograms(b.T, b.o.New, newReference, b.o.Programs, FirstSeed())
	}}}
}

// FirstSeed returns where the seeds of a test's random programs begin: at 1, and
// anywhere where FUTURA_LONG=1 is set.
func FirstSeed() uint64 {
	if long() {
		return uint64(rand.Uint32())
	}
	return 1
}

func newReference(testing.TB) kv.Database { return reference.Open(reference.Options{}) }

const (
	// programRuns is how often a program is run until one run of it counts.
	programRuns = 20
	// shrinkTime bounds the search for a shorter program.
	shrinkTime = 20 * time.Second
)

// ComparePrograms runs the programs of n seeds, from firstSeed on, on stores
// that a and b return, and fails if their transcripts differ, with a seed and a
// program that is as short as could be found. Several run at a time, each goroutine on
// stores of its own if a and b return new ones.
func ComparePrograms(t *testing.T, a, b func(testing.TB) kv.Database, n int, firstSeed uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seeds := make(chan uint64)
	problems := make(chan problem, 1)
	var all sync.WaitGroup
	for range min(n, 2*runtime.GOMAXPROCS(0)) {
		pair := pair{ctx: ctx, a: a(t), b: b(t)}
		all.Go(func() {
			for seed := range seeds {
				if found := pair.compare(NewProgram(seed)); found.text != "" {
					cancel()
					select {
					case problems <- found:
					default:
					}
				}
			}
		})
	}
	t.Logf("%d programs from seed %d on", n, firstSeed)
	for seed := firstSeed; seed < firstSeed+uint64(n) && ctx.Err() == nil; seed++ {
		seeds <- seed
	}
	close(seeds)
	all.Wait()
	close(problems)
	for found := range problems {
		require.Fail(t, fmt.Sprintf("seed %d: %s", found.seed, found.text))
	}
}

// problem is what is wrong with one program.
type problem struct {
	seed uint64
	text string
}

// pair is two stores that should be equal.
type pair struct {
	ctx  context.Context
	a, b kv.Database
}

// compare runs p on both stores.
func (s pair) compare(p Program) problem {
	first, second, err := s.run(p)
	if s.ctx.Err() != nil || err == nil && slices.Equal(first, second) {
		return problem{}
	}
	if err != nil {
		return problem{p.Seed, err.Error()}
	}
	s.ctx = context.WithoutCancel(s.ctx)
	return problem{p.Seed, s.shrink(p)}
}

func (s pair) run(p Program) (first, second []string, err error) {
	if first, err = runUntilItCounts(s.ctx, s.a, p); err != nil {
		return nil, nil, fmt.Errorf("first store: %w", err)
	}
	if second, err = runUntilItCounts(s.ctx, s.b, p); err != nil {
		return nil, nil, fmt.Errorf("second store: %w", err)
	}
	return first, second, nil
}

func runUntilItCounts(ctx context.Context, db kv.Database, p Program) (lines []string, err error) {
	for range programRuns {
		if lines, err = RunProgram(ctx, db, p); err == nil || !kv.Retryable(err) {
			break
		}
	}
	return lines, err
}

// shrink leaves out steps as long as the transcripts differ, and describes the
// difference.
func (s pair) shrink(p Program) string {
	first, second, err := s.run(p)
	until := time.Now().Add(shrinkTime)
	for again := true; again && err == nil; {
		again = false
		for i := len(p.Steps) - 1; i >= 0 && time.Now().Before(until); i-- {
			less := Program{Seed: p.Seed, Steps: slices.Delete(slices.Clone(p.Steps), i, i+1)}
			one, two, failed := s.run(less)
			if failed == nil && !slices.Equal(one, two) {
				p, first, second, again = less, one, two, true
			}
		}
	}
	if err != nil || slices.Equal(first, second) {
		return fmt.Sprintf("the stores differed once, and then did not: %v", err)
	}
	return fmt.Sprintf("the stores differ, at least in these %d steps:\n%s", len(p.Steps), difference(first, second))
}

// difference returns the lines up to the first that differs, which is shown
// twice.
func difference(first, second []string) string {
	var out strings.Builder
	for i := range max(len(first), len(second)) {
		one, two := line(first, i), line(second, i)
		if one != two {
			fmt.Fprintf(&out, "- %s\n+ %s\n", one, two)
			break
		}
		fmt.Fprintf(&out, "  %s\n", one)
	}
	return out.String()
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
