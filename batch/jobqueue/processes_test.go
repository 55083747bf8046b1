package jobqueue_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
)

const (
	lineStoreVariable   = "FUTURA_JOBQUEUE_LINE_STORE"
	lineClusterVariable = "FUTURA_JOBQUEUE_LINE_CLUSTER"
	lineMarksVariable   = "FUTURA_JOBQUEUE_LINE_MARKS"
)

// Marks are lines of a file to which all processes append: a process has started, an
// attempt of a job has begun or was successful, a stage knows that its progress was
// stored.
const (
	markStart   = "start"
	markBegin   = "begin"
	markEnd     = "end"
	markAdvance = "advance"
)

// mark is a line of the file.
type mark struct {
	what           string
	process, stage int
	index          uint64
}

// processTime is how long a test waits for processes.
const processTime = 5 * time.Minute

// markSize is about the size of a mark.
const markSize = 18

// marker appends marks, which the system does not mix with others.
type marker struct{ file *os.File }

func (w marker) put(what string, stage int, index uint64) error {
	_, err := fmt.Fprintf(w.file, "%s %d %d %d\n", what, os.Getpid(), stage, index)
	return err
}

// lineMain is a process with all stages of a pipeline, until it is killed.
func lineMain(store string) int {
	fmt.Fprintln(os.Stderr, runLine(context.Background(), store))
	return 1
}

func runLine(ctx context.Context, store string) error {
	file, err := os.OpenFile(os.Getenv(lineMarksVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	marks := marker{file}
	if err := marks.put(markStart, 0, 0); err != nil {
		return err
	}
	db, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return err
	}
	cluster, err := openLine(ctx, db, os.Getenv(lineClusterVariable))
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	l := &line{prefix: cluster.Name(), pause: 5 * time.Millisecond}
	err = l.start(cluster, func(stage int, processed uint64) {
		if err := marks.put(markAdvance, stage, processed); err != nil {
			failed <- err
		}
	}, func(stage int, handle jobqueue.Handler[uint64]) jobqueue.Handler[uint64] {
		return func(ctx context.Context, job jobqueue.Job[uint64], out *jobqueue.Output) error {
			if err := marks.put(markBegin, stage, job.Index); err != nil {
				return err
			}
			if err := handle(ctx, job, out); err != nil {
				return err
			}
			return marks.put(markEnd, stage, job.Index)
		}
	})
	if err != nil {
		return err
	}
	fmt.Println("started")
	return <-failed
}

// openLine opens the cluster of a test, in which a process that shows no sign of life is
// soon taken for dead.
func openLine(ctx context.Context, db kv.Database, name string) (*fdbmodel.Cluster, error) {
	config := layout.Config{Heartbeat: 200 * time.Millisecond, DeadAfter: time.Second, Shards: 2}
	if storetest.OnServer {
		config.DeadAfter *= 2
	}
	return fdbmodel.Open(ctx, db, name, fdbmodel.Options{Config: config})
}

// lineProcess is such a process, as the test sees it.
type lineProcess struct {
	command *exec.Cmd
	out     io.Reader
}

func startLineProcess(t *testing.T, store, cluster, marks string) lineProcess {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), lineStoreVariable+"="+store, lineClusterVariable+"="+cluster, lineMarksVariable+"="+marks)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { // of a test that failed: its directory goes next
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return lineProcess{c, out}
}

// started waits until the stages were started.
func (p lineProcess) started(t *testing.T) {
	text, err := bufio.NewReader(p.out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", text)
}

func (p lineProcess) kill(t *testing.T) {
	require.NoError(t, p.command.Process.Kill())
	_, _ = io.Copy(io.Discard, p.out)
	require.Error(t, p.command.Wait())
}

// checkLineMarks requires that no progress was stored over a job that was not done, and
// that no process went back before what was stored when it was started. It returns how
// many attempts there were of jobs that had been done.
func checkLineMarks(t *testing.T, path string) (attempts, again int) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var stored, whole [3]uint64
	done := [3]map[uint64]bool{{}, {}, {}}
	first := map[int][3]uint64{} // what was stored as each process was started
	for text := range strings.Lines(string(content)) {
		var m mark
		_, err := fmt.Sscan(text, &m.what, &m.process, &m.stage, &m.index)
		require.NoError(t, err, text)
		switch m.what {
		case markStart:
			first[m.process] = stored
		case markBegin:
			require.Greater(t, m.index, first[m.process][m.stage], "stage %d went back", m.stage)
			if attempts++; done[m.stage][m.index] {
				again++
			}
		case markEnd:
			done[m.stage][m.index] = true
			for done[m.stage][whole[m.stage]+1] {
				whole[m.stage]++
			}
		case markAdvance:
			require.LessOrEqual(t, m.index, whole[m.stage], "stage %d skipped a job", m.stage)
			require.Greater(t, m.index, first[m.process][m.stage], "stage %d went back", m.stage)
			stored[m.stage] = max(stored[m.stage], m.index)
		}
	}
	return attempts, again
}

// lineKills is how many processes a test kills.
func lineKills() int {
	if long {
		return 100
	}
	return 3
}

// feeder appends numbers to the first log of a pipeline.
type feeder struct {
	*testing.T
	log  *jobqueue.Log[uint64]
	next uint64
	path string // of the marks
	seen int64  // the size of the marks
	due  time.Time
}

// feed appends three numbers.
func (f *feeder) feed() {
	_, _, err := f.log.AppendOnce(f.Context(), "feeder", int64(f.next+1), f.next, f.next+1, f.next+2)
	require.NoError(f, err)
	f.next += 3
}

// await appends numbers until so many more marks were made.
func (f *feeder) await(n int) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(f.Context(), processTime)
	defer cancel()
	for target := f.size() + int64(n*markSize); f.size() < target; {
		if now := time.Now(); !now.Before(f.due) {
			f.feed()
			f.due = now.Add(30 * time.Millisecond)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.FailNow(f, "no progress", "marks: %s", f.path)
		}
	}
}

func (f *feeder) size() int64 {
	info, err := os.Stat(f.path)
	require.NoError(f, err)
	return info.Size()
}

// awaitProgress waits until all stages have done all jobs.
func awaitProgress(t *testing.T, cluster *fdbmodel.Cluster, n uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), processTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i, count := range []uint64{n, 2 * n, 2 * n} {
		for {
			q, err := joblog.Of(cluster).Get(ctx, fmt.Sprint("log-", i))
			require.NoError(t, err)
			if len(q.Consumers) > 0 && q.Consumers[0].Progress.Index == int64(count) {
				break
			}
			<-tick.C
		}
	}
}

// TestPipelineOfKilledProcesses runs a pipeline of three stages in two processes that
// share a store, and kills one or the other again and again. What is in the store at
// the end happened once and in order, no process skipped a job, and none went back.
func TestPipelineOfKilledProcesses(t *testing.T) {
	t.Parallel()
	db, address := storetest.Shared(t)
	name := fmt.Sprintf("kills-%x", rand.Uint32())
	cluster, err := openLine(t.Context(), db, name)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "marks")
	var team [2]lineProcess
	for i := range team {
		team[i] = startLineProcess(t, address, name, path)
		team[i].started(t)
	}
	f := &feeder{T: t, log: newLog[uint64](t, cluster, "log-0"), path: path}
	for range lineKills() {
		f.await(1 + rand.IntN(300))
		i := rand.IntN(len(team))
		team[i].kill(t)
		team[i] = startLineProcess(t, address, name, path)
	}
	awaitProgress(t, cluster, f.next)
	for i := range team {
		team[i].kill(t)
	}
	attempts, again := checkLineMarks(t, path)
	t.Logf("%d kills: %d numbers, %d attempts, %d of them of jobs that were done", lineKills(), f.next, attempts, again)
	requireOnce(t, cluster, name, f.next)
}

// TestPipelineOfAKilledOwner runs a pipeline in the process that has the store open, on
// disk, and kills it again and again, also as it starts.
func TestPipelineOfAKilledOwner(t *testing.T) {
	t.Parallel()
	if storetest.OnServer {
		t.Skip("the store of a server has no owner")
	}
	store, name := "embedded:"+t.TempDir(), "kills"
	path := filepath.Join(t.TempDir(), "marks")
	next := uint64(0)
	with := func(do func(*fdbmodel.Cluster)) {
		db, err := kvopen.Open(t.Context(), store, kvopen.Options{})
		require.NoError(t, err)
		cluster, err := openLine(t.Context(), db, name)
		require.NoError(t, err)
		do(cluster)
		require.NoError(t, db.Close())
	}
	feed := func() {
		with(func(cluster *fdbmodel.Cluster) {
			log, err := jobqueue.NewLog(cluster, "log-0", jobqueue.LogOptions[uint64]{})
			require.NoError(t, err)
			f := &feeder{T: t, log: log, next: next}
			for range 1 + rand.IntN(10) {
				f.feed()
			}
			next = f.next
			log.Close()
		})
	}
	for range lineKills() {
		feed()
		p := startLineProcess(t, store, name, path)
		if rand.IntN(10) > 0 {
			p.started(t)
		}
		pause := time.NewTimer(time.Duration(rand.IntN(100)) * time.Millisecond)
		<-pause.C
		p.kill(t)
	}
	feed()
	p := startLineProcess(t, store, name, path)
	p.started(t)
	awaitMark(t, path, fmt.Sprintf("%s %d 2 %d\n", markAdvance, p.command.Process.Pid, 2*next))
	p.kill(t)
	attempts, again := checkLineMarks(t, path)
	t.Logf("%d kills: %d numbers, %d attempts, %d of them of jobs that were done", lineKills(), next, attempts, again)
	with(func(cluster *fdbmodel.Cluster) { requireOnce(t, cluster, name, next) })
}

// awaitMark waits until a process has made a mark.
func awaitMark(t *testing.T, path, want string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), processTime)
	defer cancel()
	for {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		if strings.Contains(string(content), want) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.FailNow(t, "no progress")
		}
	}
}
