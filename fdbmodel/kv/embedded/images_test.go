package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/faultdisk"
)

// life is a history of commits, with checkpoints, large values, closes and kills,
// on a disk that can fail.
type life struct {
	options Options
	random  *rand.Rand
	disk    *faultdisk.Disk
	store   *Store
	// acked is the last step that was acknowledged.
	acked int
}

// lives are options under which all that happens to files happens often.
func lives() map[string]Options {
	return map[string]Options{
		"tiny":   tiny(Options{}),
		"copies": {SegmentSize: 40 << 10, CheckpointBytes: 64 << 10, LargeValue: tinyValue, HistoryVersions: 1},
		"tables": {SegmentSize: 2 << 10, CheckpointBytes: 700, LargeValue: tinyValue, HistoryVersions: 1},
		"cold":   {SegmentSize: 2 << 10, CheckpointBytes: 700, LargeValue: tinyValue, HistoryVersions: 1, Memory: 1},
		"large":  {SegmentSize: 8 << 10, CheckpointBytes: 24 << 10, LargeValue: 100, HistoryVersions: 1},
	}
}

func newLife(o Options, seed uint64) *life {
	l := &life{options: o, random: rand.New(rand.NewPCG(seed, 1)), disk: faultdisk.New()}
	l.options.Inline = true
	return l
}

func (l *life) open(disk *faultdisk.Disk) (*Store, error) {
	o := l.options
	o.FS = disk
	return Open(context.Background(), "store", o)
}

// run does steps until something fails.
func (l *life) run(steps int) (err error) {
	for i := 1; i <= steps; i++ {
		if l.store == nil {
			if l.store, err = l.open(l.disk); err != nil {
				return err
			}
		}
		err = l.commit(i)
		nothing := errors.Is(err, kv.ErrReadOnly) || errors.Is(err, kv.ErrUnavailable)
		if nothing && l.random.IntN(2) == 0 {
			err = l.commit(i)
		}
		if err != nil {
			return err
		}
		l.acked = i
		switch {
		case i%7 == 0:
			err = l.store.Close()
			l.store = nil
		case i%16 == 0:
			before := l.disk.Before
			l.disk, l.store = l.disk.Killed(), nil
			l.disk.Before = before
		case i%25 == 0:
			err = l.store.Checkpoint(context.Background())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *life) commit(step int) error {
	tx := l.store.Begin(kv.Options{})
	crashStep(tx, step)
	_, err := tx.Commit(context.Background())
	return err
}

// stepOf returns the step that the rows of an opened store come from.
func stepOf(s *Store, history []map[string]string) (int, error) {
	tx := s.Begin(kv.Options{})
	defer tx.Cancel()
	page, err := tx.Snapshot().GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{}).Wait(context.Background())
	if err != nil {
		return 0, err
	}
	rows := map[string]string{}
	for _, item := range page.Items {
		rows[string(item.Key)] = string(item.Value)
	}
	for step := range history {
		if maps.Equal(rows, history[step]) {
			return step, nil
		}
	}
	return 0, errors.New("the rows are not those after any step")
}

// judge opens a disk, which must be at a step from acked to the next, and fails
// the power again at once: what was seen may not go away.
func (l *life) judge(image *faultdisk.Disk, history []map[string]string, acked int) error {
	seen := acked
	for range 2 {
		s, err := l.open(image)
		if err != nil {
			return err
		}
		step, err := stepOf(s, history)
		if err != nil {
			return err
		}
		if step < seen || step > acked+1 {
			return fmt.Errorf("step %d was acknowledged, %d was seen, %d is there", acked, seen, step)
		}
		failed := image.Image(faultdisk.All, l.random)
		abandon(s)
		seen, image = step, failed
	}
	return nil
}

// abandon frees what a store holds whose disk is not looked at any more. One that is only forgotten keeps its memory
// over a collection of garbage, so that many of them, between collections that are far apart, take all there is.
func abandon(s *Store) { _ = s.Close() }

// TestImagesAtEveryCall fails the power before each call that changes the disk.
func TestImagesAtEveryCall(t *testing.T) {
	t.Parallel()
	steps, every := 40, 13
	if os.Getenv("FUTURA_LONG") == "1" {
		steps, every = 120, 2
	}
	history := crashHistory(t, steps)
	seed, images := rand.Uint64(), 0
	t.Logf("seed %d", seed)
	for name, o := range lives() {
		l, calls := newLife(o, seed), 0
		l.disk.Before = func(call faultdisk.Call) error {
			if calls++; calls%every != 0 {
				return nil
			}
			for _, loss := range faultdisk.Losses() {
				images++
				require.NoError(t, l.judge(l.disk.Image(loss, l.random), history, l.acked),
					"%s, power fails before call %d, %v, loss %d", name, calls, call, loss)
			}
			images++
			require.NoError(t, l.judge(l.disk.Killed(), history, l.acked), "%s, killed before call %d, %v", name, calls, call)
			return nil
		}
		require.NoError(t, l.run(steps))
	}
	fmt.Printf("crash images of the engine: %d\n", images)
	require.Greater(t, images, 300)
}

// TestFailureOfAnyCall fails one call: what was acknowledged is there when the
// store is opened again, is there after more commits, and after a power failure.
func TestFailureOfAnyCall(t *testing.T) {
	t.Parallel()
	const steps, more = 40, 3
	every := 81
	if os.Getenv("FUTURA_LONG") == "1" {
		every = 2
	}
	history := crashHistory(t, steps+more)
	failures := 0
	for name, o := range lives() {
		ops := opsOf(t, o, steps)
		for i, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE} {
			for at, op := range ops {
				turn := at + i*every/3 // each cause has calls of its own
				// What may or may not have happened is the hardest.
				if names := op == "rename" || op == "syncdir"; turn%every != 0 && (!names || turn%max(1, every/10) != 0) {
					continue
				}
				l, calls := newLife(o, uint64(at)), 0
				l.disk.Before = func(call faultdisk.Call) error {
					if calls++; calls == at+1 {
						return cause
					}
					return nil
				}
				failures++
				require.NoError(t, l.afterFailure(history, more, l.run(steps)), "%s, call %d, %s, fails with %v",
					name, at, op, cause)
			}
		}
	}
	fmt.Printf("calls of the engine that failed: %d\n", failures)
}

// opsOf returns the calls of a run.
func opsOf(t *testing.T, o Options, steps int) (ops []string) {
	l := newLife(o, 0)
	l.disk.Before = func(call faultdisk.Call) error {
		ops = append(ops, call.Op)
		return nil
	}
	require.NoError(t, l.run(steps))
	return ops
}

// afterFailure goes on after a run that may have failed.
func (l *life) afterFailure(history []map[string]string, more int, failed error) error {
	clear := failed == nil || errors.Is(failed, syscall.EIO) || errors.Is(failed, syscall.ENOSPC) ||
		errors.Is(failed, syscall.EMFILE)
	if !clear {
		return fmt.Errorf("the error does not say why: %w", failed)
	}
	if err := l.judge(l.disk.Killed(), history, l.acked); err != nil {
		return err
	}
	disk := l.disk.Killed()
	s, err := l.open(disk)
	if err != nil {
		return err
	}
	step, err := stepOf(s, history)
	if err != nil {
		return err
	}
	for i := range more {
		tx := s.Begin(kv.Options{})
		crashStep(tx, step+1+i)
		if _, err := tx.Commit(context.Background()); err != nil {
			return err
		}
	}
	after := disk.Image(faultdisk.All, l.random)
	abandon(s)
	return l.judge(after, history, step+more)
}

// TestDamagedImages flips bits in what a power failure left: the store says so, or
// lacks nothing but the last commit.
func TestDamagedImages(t *testing.T) {
	t.Parallel()
	steps, flips := 40, 4
	if os.Getenv("FUTURA_LONG") == "1" {
		flips = 60
	}
	history := crashHistory(t, steps)
	found, harmless := 0, 0
	for name, o := range lives() {
		l, calls := newLife(o, 7), 0
		l.disk.Before = func(call faultdisk.Call) error {
			if calls++; calls%29 != 0 {
				return nil
			}
			for range flips {
				image := l.disk.Image(faultdisk.All, l.random)
				names := image.Names("store")
				if len(names) == 0 {
					return nil
				}
				file := names[l.random.IntN(len(names))]
				size, err := image.Stat(file)
				require.NoError(t, err)
				if size.Size() == 0 {
					continue
				}
				bit := l.random.IntN(int(8 * size.Size()))
				require.NoError(t, image.Flip(file, bit))
				s, err := l.open(image)
				if err == nil {
					step, unread := stepOf(s, history)
					abandon(s)
					if unread == nil {
						require.GreaterOrEqual(t, step, l.acked-1, "%s: bit %d of %s", name, bit, file)
						harmless++
						continue
					}
					err = unread
				}
				require.ErrorIs(t, err, kv.ErrCorrupt, "%s: bit %d of %s", name, bit, file)
				require.ErrorContains(t, err, "store/")
				found++
			}
			return nil
		}
		require.NoError(t, l.run(steps))
	}
	t.Logf("%d flipped bits were found, %d did no harm", found, harmless)
	require.NotZero(t, found)
}
