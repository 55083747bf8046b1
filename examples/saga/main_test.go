package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// storeVariable names the store of a process that a test starts.
const storeVariable = "FUTURA_SAGA_STORE"

func TestMain(m *testing.M) {
	if store := os.Getenv(storeVariable); store != "" {
		if err := run(context.Background(), store, "127.0.0.1:0", os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// process is one of those that run the saga, with what it has told so far, without ids.
type process struct {
	*exec.Cmd
	t    *testing.T
	out  *bufio.Scanner
	told []string
	link string // the last one that a person got
}

func start(t *testing.T, store string) *process {
	binary, err := os.Executable()
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(binary), t: t}
	p.Env, p.Stderr = append(os.Environ(), storeVariable+"="+store), os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewScanner(out)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// next returns the next line, and whether there is one.
func (p *process) next() (line string, more bool) {
	if more = p.out.Scan(); more {
		line = p.out.Text()
		if strings.HasPrefix(line, "answer at ") {
			p.link = line
		}
		of, _, _ := strings.Cut(line, " of ")
		p.told = append(p.told, strings.Split(of, " http")[0])
	}
	return line, more
}

// until reads up to a line that begins with a text.
func (p *process) until(begin string) (line string) {
	for {
		line, more := p.next()
		require.True(p.t, more, "%v", p.told)
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
}

// end reads what is left of a process that ends by itself.
func (p *process) end() {
	for more := true; more; {
		_, more = p.next()
	}
	require.NoError(p.t, p.Wait())
}

// kill is kill -9. It returns once the process is gone, which may have ended before.
func (p *process) kill() {
	_ = p.Process.Kill()
	for more := true; more; {
		_, more = p.next()
	}
	_ = p.Wait()
}

// answer presses a button of the page of a token, and returns the status.
func (p *process) answer(site, token, action, form string) (status int) {
	answer, err := http.Post(site+"/api/v1/promises/"+token+action, "application/x-www-form-urlencoded",
		strings.NewReader(form))
	require.NoError(p.t, err)
	require.NoError(p.t, answer.Body.Close())
	return answer.StatusCode
}

// token returns the token that a person gets, or has got.
func (p *process) token() string {
	if p.link == "" {
		p.until("answer at ")
	}
	return p.link[strings.LastIndex(p.link, "/")+1:]
}

func (p *process) site() string { return strings.TrimPrefix(p.until("listening at "), "listening at ") }

func TestApprovedTrip(t *testing.T) {
	t.Parallel()
	p := start(t, "memory:")
	site := p.site()
	require.Equal(t, http.StatusOK, p.answer(site, p.token(), "", "value=true"))
	p.end()
	require.Equal(t, "listening at, book flight, book room, answer at, pay payment, a trip to Oslo",
		strings.Join(p.told, ", "))
}

// TestKilledTrip kills the saga while it waits for the person, and again while it undoes what was booked: the next
// process goes on where the last one was.
func TestKilledTrip(t *testing.T) {
	t.Parallel()
	store := "embedded:" + t.TempDir()
	first := start(t, store)
	token := first.token()
	first.kill()
	second := start(t, store)
	site := second.site()
	if status := second.answer(site, token, ":reject", "message=too+dear"); status != http.StatusOK {
		// It was killed before the step was on record that sent the token, so that another one was drawn.
		require.Equal(t, http.StatusNotFound, status)
		require.Equal(t, http.StatusOK, second.answer(site, second.token(), ":reject", "message=too+dear"))
	}
	second.until("cancel room")
	second.kill()
	third := start(t, store)
	third.end()
	told := strings.Join(append(append(first.told, second.told...), third.told...), ", ")
	require.Equal(t, 1, strings.Count(told, "book flight"), told)
	require.Equal(t, 1, strings.Count(told, "book room"), told)
	require.Contains(t, third.told, "approval: too dear", told)
	require.NotContains(t, told, "pay")
	require.LessOrEqual(t, strings.Count(told, "cancel room"), 2, "it may be killed before its step is on record")
	require.GreaterOrEqual(t, strings.Count(told, "cancel flight"), 1, told)
}
