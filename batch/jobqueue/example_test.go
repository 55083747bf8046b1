package jobqueue_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// Words of lines are counted by two stages, with a log between them. Each line is
// split once, and each word counted once, whatever dies meanwhile.
func Example() {
	ctx := context.Background()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	cluster, err := fdbmodel.Open(ctx, db, "default", fdbmodel.Options{})
	if err != nil {
		panic(err)
	}
	lines, _ := jobqueue.NewLog(cluster, "lines", jobqueue.LogOptions[string]{})
	defer lines.Close()
	words, _ := jobqueue.NewLog(cluster, "words", jobqueue.LogOptions[string]{})
	defer words.Close()
	split, _ := jobqueue.NewStage(cluster, lines, "split",
		func(_ context.Context, job jobqueue.Job[string], out *jobqueue.Output) error {
			return words.Emit(out, strings.Fields(job.Value)...)
		}, jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 4, MaxSearchAhead: 100}})
	counted := make(chan uint64, 100)
	count, _ := jobqueue.NewStage(cluster, words, "count",
		func(_ context.Context, _ jobqueue.Job[string], _ *jobqueue.Output) error { return nil },
		jobqueue.StageOptions{Options: jobqueue.Options{OnAdvance: func(processed uint64) { counted <- processed }}})
	_, _ = split.Start(), count.Start()
	if _, err := lines.Append(ctx, "to be or", "not to be"); err != nil {
		panic(err)
	}
	for n := uint64(0); n < 6; n = <-counted {
	}
	_, _ = split.Stop(ctx), count.Stop(ctx)
	fmt.Println(count.LastProcessedIndex(), "words")
	// Output: 6 words
}

// blocks is a chain, whose blocks are jobs by their height.
type blocks []string

// AtIndex implements jobqueue.Jobs.
func (b blocks) AtIndex(_ context.Context, height uint64) (string, error) {
	if height > uint64(len(b)) {
		return "", jobqueue.ErrNoJob
	}
	return b[height-1], nil
}

// Head implements jobqueue.Jobs.
func (b blocks) Head(context.Context) (uint64, error) { return uint64(len(b)), nil }

// stored is a progress in memory; a program keeps it where it keeps its data.
type stored struct{ height uint64 }

// ProcessedIndex implements jobqueue.ConsumerProgress.
func (s *stored) ProcessedIndex(_ context.Context, initial uint64) (uint64, error) {
	return max(s.height, initial), nil
}

// SetProcessedIndex implements jobqueue.ConsumerProgress.
func (s *stored) SetProcessedIndex(_ context.Context, height uint64) error {
	s.height = height
	return nil
}

// A consumer of a program's own jobs, with a progress of its own.
func ExampleNew() {
	ctx, chain, over := context.Background(), blocks{"genesis", "second", "third"}, make(chan struct{})
	verify := func(_ context.Context, job jobqueue.Job[string]) error {
		fmt.Println(job.Index, job.Value)
		return nil
	}
	consumer, err := jobqueue.New(chain, &stored{}, jobqueue.WorkerFunc[string](verify), jobqueue.Options{
		OnAdvance: func(height uint64) {
			if height == 3 {
				close(over)
			}
		},
	})
	if err != nil {
		panic(err)
	}
	if err := consumer.Start(ctx); err != nil {
		panic(err)
	}
	<-over
	_ = consumer.Stop(ctx)
	// Output:
	// 1 genesis
	// 2 second
	// 3 third
}
