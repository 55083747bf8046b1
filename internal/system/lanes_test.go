package system

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

const (
	lanesStoreVariable = "FUTURA_SYSTEM_LANES_STORE"
	lanesMarksVariable = "FUTURA_SYSTEM_LANES_MARKS"
)

// Marks are lines of a file to which all processes append: a run has begun, or has
// ended, or all runs of a process have, because it was killed.
const (
	markBegin  = "begin"
	markEnd    = "end"
	markKilled = "killed"
)

// mark is a line of the file. Its future is the number of one in its lane.
type mark struct {
	what    string
	process int
	lane    string
	future  int
}

// appendMark appends a line, which the system does not mix with others.
func appendMark(file *os.File, m mark) error {
	_, err := fmt.Fprintf(file, "%s %d %s %d\n", m.what, m.process, m.lane, m.future)
	return err
}

func openMarks(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

func readMarks(t *testing.T, path string) (marks []mark) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		var m mark
		_, err := fmt.Sscan(line, &m.what, &m.process, &m.lane, &m.future)
		require.NoError(t, err, line)
		marks = append(marks, m)
	}
	return marks
}

// lanesMain is a worker process, until it is killed.
func lanesMain(ctx context.Context, store string) error {
	client, err := openPlant(ctx, store)
	if err != nil {
		return err
	}
	file, err := openMarks(os.Getenv(lanesMarksVariable))
	if err != nil {
		return err
	}
	w, err := workers.New(client, workers.Options{Slots: 8, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	err = w.Register("mark", func(ctx context.Context, args []byte) ([]byte, error) {
		m := mark{what: markBegin, process: os.Getpid()}
		if _, err := fmt.Sscan(string(args), &m.lane, &m.future); err != nil {
			return nil, err
		}
		if err := appendMark(file, m); err != nil {
			return nil, err
		}
		timer := time.NewTimer(time.Duration(rand.IntN(4000)) * time.Microsecond)
		defer timer.Stop()
		<-timer.C
		m.what = markEnd
		if err := appendMark(file, m); err != nil {
			return nil, err
		}
		if rand.IntN(10) == 0 {
			return nil, errors.New("every tenth run fails")
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	return work(ctx, w)
}

// laneWorker is a worker process of the test.
type laneWorker struct {
	command *exec.Cmd
	out     io.Reader
}

func startLanes(t *testing.T, store, marks string) laneWorker {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), lanesStoreVariable+"="+store, lanesMarksVariable+"="+marks)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	return laneWorker{c, out}
}

// ready waits until the worker is a member.
func (w laneWorker) ready(t *testing.T) {
	line, err := bufio.NewReader(w.out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
}

// kill kills the process, and then says so.
func (w laneWorker) kill(t *testing.T, marks *os.File) {
	require.NoError(t, w.command.Process.Kill())
	_, _ = io.Copy(io.Discard, w.out)
	require.Error(t, w.command.Wait())
	require.NoError(t, appendMark(marks, mark{what: markKilled, process: w.command.Process.Pid, lane: "-"}))
}

// laneWidths are the kinds of lanes of the test.
var laneWidths = map[string]int{"one": 1, "two": 2}

const (
	lanesOfKind = 5
	// laneAhead is how many futures of a lane there are at a time.
	laneAhead = 6
)

// feed submits futures to a lane, one after the other, until stop is closed, and waits
// for all of them.
func feed(ctx context.Context, p *plant, lane futures.Lane, stop <-chan struct{}) (submitted int, err error) {
	var open []*futures.Future
	for {
		select {
		case <-stop:
			return submitted, p.awaitEnds(ctx, open)
		default:
		}
		f, err := p.client.Submit(ctx, futures.Task{
			Function: "go:mark", Lane: lane, Args: fmt.Appendf(nil, "%s %d", lane, submitted), MaxRetries: new(50),
			Backoff: layout.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond},
		})
		if err != nil {
			return submitted, err
		}
		submitted++
		if open = append(open, f); len(open) == laneAhead {
			if err := p.awaitEnds(ctx, open[:1]); err != nil {
				return submitted, err
			}
			open = open[1:]
		}
	}
}

// awaitEnds waits until futures have ended. One whose workers were killed again and
// again is taken for the cause, and fails.
func (p *plant) awaitEnds(ctx context.Context, open []*futures.Future) error {
	for _, f := range open {
		var failure *futures.FailedError
		if _, err := f.Await(ctx); err != nil && !(errors.As(err, &failure) && ctx.Err() == nil) {
			return err
		}
	}
	return nil
}

// checkMarks requires that no lane ever ran more at once than its width, and that those
// of width 1 kept the order in which they were submitted.
func checkMarks(t *testing.T, marks []mark) (runs, again int) {
	running, last := map[string]map[mark]bool{}, map[string]int{}
	for _, m := range marks {
		run := m
		run.what = ""
		switch m.what {
		case markBegin:
			if running[m.lane] == nil {
				running[m.lane] = map[mark]bool{}
				last[m.lane] = -1
			}
			runs++
			running[m.lane][run] = true
			kind, _, _ := strings.Cut(m.lane, "/")
			require.LessOrEqual(t, len(running[m.lane]), laneWidths[kind], "lane %s runs %v", m.lane, running[m.lane])
			if m.future == last[m.lane] {
				again++
			}
			if kind == "one" {
				require.GreaterOrEqual(t, m.future, last[m.lane], "lane %s is out of order", m.lane)
				require.LessOrEqual(t, m.future, last[m.lane]+1, "lane %s left one out", m.lane)
			}
			last[m.lane] = m.future
		case markEnd:
			delete(running[m.lane], run)
		case markKilled:
			for _, runs := range running {
				for other := range runs {
					if other.process == m.process {
						delete(runs, other)
					}
				}
			}
		}
	}
	return runs, again
}

// TestLanesOfKilledWorkers kills worker processes again and again while they run
// futures of lanes of width 1 and 2: never do more run at once, those of width 1 in
// their order, no slot is lost, and all come to their end.
func TestLanesOfKilledWorkers(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("FUTURA_LONG") == "1" {
		rounds = 1000
	}
	db, err := kvopen.Open(t.Context(), "memory:", kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	p := plantWith(t, db, "plant", time.Second)
	for kind, width := range laneWidths {
		require.NoError(t, p.client.SetLaneKind(p.ctx, kind, futures.LaneSettings{Width: width}))
	}
	store, stopStore := serveStore(t, p)
	defer stopStore()
	path := filepath.Join(t.TempDir(), "marks")
	marks, err := openMarks(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, marks.Close()) }()
	team := make([]laneWorker, 4)
	for i := range team {
		team[i] = startLanes(t, store, path)
		team[i].ready(t)
	}
	submitted := runRounds(t, p, rounds, func(n int) {
		at := n % len(team)
		team[at].kill(t, marks)
		team[at] = startLanes(t, store, path)
	}, path)
	for _, w := range team {
		w.kill(t, marks)
	}
	runs, again := checkMarks(t, readMarks(t, path))
	t.Logf("%d rounds: %d futures, %d runs, %d of them again", rounds, submitted, runs, again)
	require.Positive(t, again)
	p.check()
	for kind := range laneWidths {
		lanes, err := lanes.Of(p.client.Cluster()).List(p.ctx, kind, "", 100)
		require.NoError(t, err)
		require.Empty(t, lanes)
	}
}

// runRounds feeds all lanes while it kills, and then waits for the end of all.
func runRounds(t *testing.T, p *plant, rounds int, kill func(n int), path string) (submitted int) {
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute+time.Duration(rounds)*5*time.Second)
	defer cancel()
	stop := make(chan struct{})
	var feeders sync.WaitGroup
	var mu sync.Mutex
	for kind := range laneWidths {
		for n := range lanesOfKind {
			feeders.Go(func() {
				n, err := feed(ctx, p, futures.Lane{Kind: kind, Key: fmt.Sprint(n)}, stop)
				mu.Lock()
				defer mu.Unlock()
				submitted += n
				if err != nil {
					t.Errorf("lane %s/%d: %v", kind, n, err)
				}
			})
		}
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for n := range rounds {
		awaitMarks(t, ctx, path, 1+random.IntN(150))
		kill(n)
	}
	close(stop)
	feeders.Wait()
	return submitted
}

// markSize is about the size of a mark.
const markSize = 20

// awaitMarks waits until so many more marks were made.
func awaitMarks(t *testing.T, ctx context.Context, path string, n int) {
	size := func() int64 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Size()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for target := size() + int64(n*markSize); size() < target; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.FailNow(t, "no progress: a slot is lost, or a future starves")
		}
	}
}
