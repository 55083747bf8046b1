package futura_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// killedVariable names the directory of a process that TestStepsOfKilledProcesses starts, and
// killedPrograms how many programs that process is to end, 0 for as many as it lives for.
const (
	killedVariable = "FUTURA_KILLED_STEPS"
	killedPrograms = "FUTURA_KILLED_PROGRAMS"
)

var program = futures.Define[string, int]("program", futures.Retries(1000), futures.Backoff(1, 1))

// stepsOfProgram is how many steps a program has.
const stepsOfProgram = 10

// journal is an append-only file outside of the store, of which each line is told as well.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func (j *journal) write(words ...any) error {
	line := fmt.Sprintln(words...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.WriteString(line); err != nil {
		return err
	}
	_, err := os.Stdout.WriteString(line)
	return err
}

// step has an effect, and notes it once it is recorded.
func (j *journal) step(ctx context.Context, name string, n int) (int, error) {
	out, err := futures.Step(ctx, fmt.Sprint("step ", n), func(context.Context) (int, error) {
		return n, j.write("effect", name, n)
	})
	if err == nil && out != n {
		err = fmt.Errorf("step %d has returned %d", n, out)
	}
	if err == nil {
		err = j.write("recorded", name, n)
	}
	return out, err
}

// run is a program of ten steps, of which three run beside each other, that fails now and then.
func (j *journal) run(ctx context.Context, name string) (sum int, err error) {
	one := func(n int) {
		out, failed := j.step(ctx, name, n)
		sum, err = sum+out, errors.Join(err, failed)
	}
	one(1)
	one(2)
	if err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	errs, outs := make([]error, 3), make([]int, 3)
	for i := range 3 {
		all.Go(func() { outs[i], errs[i] = j.step(ctx, name, 3+i) })
	}
	all.Wait()
	if err = errors.Join(errs...); err != nil {
		return 0, err
	}
	sum += outs[0] + outs[1] + outs[2]
	if rand.IntN(4) == 0 {
		return 0, errors.New("it fails now and then")
	}
	for n := 6; n <= stepsOfProgram && err == nil; n++ {
		one(n)
	}
	return sum, err
}

func killedProgramsOf(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// beKilled runs one program after the other until it is killed.
func beKilled(dir string, programs int) (err error) {
	ctx := context.Background()
	file, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	j := &journal{file: file}
	node, err := futura.Open(ctx, "embedded:"+filepath.Join(dir, "store"), futura.Function(program.Bind(j.run)),
		futura.WorkerOptions(workers.Options{Slots: 4}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	for n := 1; programs == 0 || n <= programs; n++ {
		name := fmt.Sprint("program-", n)
		f, err := program.Submit(ctx, node.Client, name, futures.Key(name))
		if err != nil {
			return err
		}
		if err := finishProgram(ctx, node.Client, f.ID()); err != nil {
			return err
		}
	}
	return nil
}

// finishProgram awaits a program. One that has failed, since three processes were killed with it, goes on.
func finishProgram(ctx context.Context, c *futures.Client, id futures.ID) error {
	for {
		if err := goOn(ctx, c, id); err != nil {
			return err
		}
		sum, err := program.Of(c.Future(id)).Await(ctx)
		switch {
		case err == nil && sum == 55:
			return nil
		case err == nil:
			return fmt.Errorf("program %s has the result %d", id, sum)
		case !errors.Is(err, futures.ErrFailed):
			return err
		}
	}
}

// goOn has a future run at once that waits because its worker was killed, or has failed for that.
func goOn(ctx context.Context, c *futures.Client, id futures.ID) error {
	v, err := c.Get(ctx, id)
	if err != nil || v.State != futures.Delayed && v.State != futures.Failed {
		return err
	}
	if err := c.Retry(ctx, id); !errors.Is(err, futures.ErrTransition) {
		return err
	}
	return nil
}

// TestStepsOfKilledProcesses kills a process as kill -9 does, at any point of programs of ten steps, and
// counts their effects: a recorded step never runs again. FUTURA_LONG=1 kills 500.
func TestStepsOfKilledProcesses(t *testing.T) {
	t.Parallel()
	kills := 20
	switch {
	case os.Getenv("FUTURA_LONG") == "1":
		kills = 500
	case testing.Short():
		kills = 8
	}
	dir, programs := t.TempDir(), 0
	for range kills {
		programs = max(programs, killAfter(t, dir, 1+rand.IntN(30)))
	}
	child := killedChild(t, dir, programs)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(dir, "journal"))
	require.NoError(t, err)
	effects, recorded, again := map[string]int{}, map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		what, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "effect":
			require.False(t, recorded[of], "a recorded step runs again: %s", of)
			if effects[of]++; effects[of] > 1 {
				again++
			}
		case "recorded":
			require.NotZero(t, effects[of], "%s was recorded, and never ran", of)
			recorded[of] = true
		}
	}
	require.Len(t, effects, programs*stepsOfProgram)
	require.LessOrEqual(t, again, 3*kills, "at most the steps that ran when the process was killed run again")
	t.Logf("%d kills, %d programs, %d steps ran and were not recorded", kills, programs, again)
}

func killedChild(t *testing.T, dir string, programs int) *exec.Cmd {
	binary, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(binary)
	child.Env = append(os.Environ(), killedVariable+"="+dir, fmt.Sprint(killedPrograms, "=", programs))
	return child
}

// killAfter starts a process, and kills it once it has written so many lines. It returns the last
// program that it began.
func killAfter(t *testing.T, dir string, lines int) (last int) {
	child := killedChild(t, dir, 0)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	scanner := bufio.NewScanner(out)
	for n := 0; n < lines && scanner.Scan(); n++ {
		var what string
		var of, step int
		_, err := fmt.Sscanf(scanner.Text(), "%s program-%d %d", &what, &of, &step)
		require.NoError(t, err, scanner.Text())
		last = max(last, of)
	}
	require.NoError(t, child.Process.Kill())
	for scanner.Scan() {
		var what string
		var of, step int
		if _, err := fmt.Sscanf(scanner.Text(), "%s program-%d %d", &what, &of, &step); err == nil {
			last = max(last, of)
		}
	}
	_ = child.Wait()
	return last
}
