package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// lines is a log of JSON lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level}))
}

// about returns the lines whose message begins so.
func (l *lines) about(t *testing.T, message string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for line := range strings.Lines(l.text.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		if strings.HasPrefix(fields["msg"].(string), message) {
			found = append(found, fields)
		}
	}
	return found
}

// TestTheLogTellsWhatWentWrong, and the hooks do as well.
func TestTheLogTellsWhatWentWrong(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	log := &lines{}
	var mu sync.Mutex
	hooks := map[string][]Failure{}
	waits := make(chan struct{})
	hook := func(name string) func(Failure) {
		return func(f Failure) {
			mu.Lock()
			defer mu.Unlock()
			hooks[name] = append(hooks[name], f)
			panic("a hook that panics is no end")
		}
	}
	w := b.start(Options{
		Slots: 1, Logger: log.logger(slog.LevelInfo), OnAttemptFailed: hook("attempt"), OnFailed: hook("future"),
	}, map[string]Function{
		"fails":  func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no such table") },
		"panics": func(context.Context, []byte) ([]byte, error) { panic("too bad") },
		"waits": func(ctx context.Context, _ []byte) ([]byte, error) {
			close(waits)
			<-ctx.Done()
			panic("it was cancelled")
		},
	})
	twice := func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 1 }
	fails, panics := b.one("go:fails", twice), b.one("go:panics")
	cancelled := b.one("go:fails", func(s *fdbmodel.Submission) { s.Spec.MaxRetries = 1000 })
	b.awaitOver(fails, panics)
	_, _, err := b.cluster.Cancel(b.ctx, cancelled, "")
	require.NoError(t, err)
	stopped := b.one("go:waits")
	<-waits
	_, _, err = b.cluster.Cancel(b.ctx, stopped, "")
	require.NoError(t, err)
	b.awaitOver(cancelled, stopped)
	w.end()

	of := func(id layout.ID, message string) (found []map[string]any) {
		for _, fields := range log.about(t, message) {
			if fields["future"] == id.String() {
				found = append(found, fields)
			}
		}
		return found
	}
	first := of(fails, "an attempt failed")
	require.Len(t, first, 1)
	require.Equal(t, "WARN", first[0]["level"])
	require.Equal(t, "go:fails", first[0]["function"])
	require.EqualValues(t, 1, first[0]["attempt"])
	require.EqualValues(t, 2, first[0]["of"])
	require.Equal(t, "error", first[0]["kind"])
	require.Equal(t, "no such table", first[0]["error"])
	next, err := time.Parse(time.RFC3339, first[0]["next"].(string))
	require.NoError(t, err)
	require.True(t, next.After(epoch))
	last := of(fails, "a future failed for good")
	require.Len(t, last, 1)
	require.Equal(t, "ERROR", last[0]["level"])
	require.EqualValues(t, 2, last[0]["attempt"])
	require.NotContains(t, last[0], "next")
	trap := of(panics, "a future failed for good")
	require.Len(t, trap, 1)
	require.Equal(t, "panic: too bad", trap[0]["error"])
	require.Contains(t, trap[0]["stack"], "log_test.go")
	for _, id := range []layout.ID{cancelled, stopped} {
		require.Equal(t, layout.KindCancelled, b.row(id).Exception.Kind)
		require.Empty(t, of(id, "a future failed for good"))
	}

	mu.Lock()
	defer mu.Unlock()
	finals := 0
	for _, f := range hooks["future"] {
		require.True(t, f.Final)
		finals++
		if f.ID == panics {
			require.Equal(t, "panic: too bad", f.Message)
			require.Contains(t, f.Stack, "log_test.go")
		}
	}
	require.Equal(t, 2, finals)
	require.Greater(t, len(hooks["attempt"]), 2)
	require.NotEmpty(t, log.about(t, "a hook panicked"))
}

// TestAMillionFailuresDoNotFillADisk: those that are alike are counted.
func TestAMillionFailuresDoNotFillADisk(t *testing.T) {
	t.Parallel()
	clk, log := clock.NewVirtual(epoch), &lines{}
	l := newFailureLog(log.logger(slog.LevelInfo), clk.Now)
	const others = 1000
	million := 1_000_000
	if testing.Short() {
		million /= 10 // nothing else is asserted of the number than that it is counted
	}
	for i := range million {
		message := fmt.Sprintf("row %d of table a-%d is locked", i, i)
		l.add(&Failure{Function: "go:f", Kind: layout.KindError, Message: message})
	}
	for i := range others {
		l.add(&Failure{Function: fmt.Sprintf("go:f%d", i), Kind: layout.KindError, Message: "odd"})
	}
	require.Len(t, log.about(t, "an attempt failed"), failureLines+failureKinds-1)
	l.pass(false)
	require.Empty(t, log.about(t, "an attempt failed, and more"), "the interval has not passed")
	require.LessOrEqual(t, len(l.kinds), failureKinds+1)
	clk.Advance(failureInterval)
	l.pass(false)
	more := map[float64]bool{}
	for _, fields := range log.about(t, "an attempt failed, and more like it") {
		more[fields["more"].(float64)] = true
	}
	require.Equal(t, map[float64]bool{float64(million - failureLines): true, others - failureKinds + 1: true}, more)
	l.add(&Failure{Function: "go:f", Kind: layout.KindError, Message: "row 7 of table a7 is locked"})
	require.Empty(t, l.kinds[alike{"go:f", layout.KindError, "row # of table # is locked", false}].last.Function)

	loud := &lines{}
	l = newFailureLog(loud.logger(slog.LevelDebug), clk.Now)
	for range 20 {
		l.add(&Failure{Function: "go:f", Kind: layout.KindError, Message: "m", Final: true})
	}
	require.Len(t, loud.about(t, "a future failed for good"), 20)
}

// TestLostFuturesAreReported by a worker of the process that finds the dead one.
func TestLostFuturesAreReported(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	deadly, log := newBlocker(true), &lines{}
	lost := make(chan Failure, 10)
	id := b.one("go:deadly")
	for range 1 + fdbmodel.MaxCrashes {
		w := b.start(Options{Address: "10.0.0.1:7000", Slots: 1}, map[string]Function{"deadly": deadly.run})
		b.begins(deadly)
		w.crash()
		<-w.done
	}
	b.start(Options{
		Address: "10.0.0.1:7000", Slots: 1, Logger: log.logger(slog.LevelInfo), OnFailed: func(f Failure) { lost <- f },
	}, map[string]Function{"deadly": echo})
	b.awaitOver(id)
	f := <-lost
	require.Equal(t, id, f.ID)
	require.Equal(t, layout.KindLost, f.Kind)
	require.Equal(t, "go:deadly", f.Function)
	found := log.about(t, "a future failed for good")
	require.Len(t, found, 1)
	require.Equal(t, "3 workers died while they ran it", found[0]["error"])
}
