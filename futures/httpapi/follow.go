package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// maxFollow is the longest that a request follows a future.
const maxFollow = 24 * time.Hour

// attemptsOf returns the attempts of a future that have ended, if one has failed.
func attemptsOf(row *layout.Row) []Attempt {
	var all []Attempt
	for _, a := range row.EndedAttempts() {
		all = append(all, Attempt{
			Attempt: a.Attempt, Worker: a.Worker, StartedAt: timeIfSet(a.StartedAt), EndedAt: timeOf(a.At), Kind: a.Kind,
			Message: a.Message,
		})
	}
	return all
}

func (s *server) registerFollow() {
	s.Handle(stack.Route{
		Permission: stack.Read, Handle: s.follow, Stream: true, OutStream: map[string]any{"text/event-stream": Future{}},
		Operation: operation(http.MethodGet, futuresPath+"/{id}/events", "follow", "Follow a future by server-sent events",
			`"progress" events when its state, its attempt or its progress has changed, and "over" at its end, each with the `+
				"future as data. It is looked at once a second."),
	})
}

// follow streams what a future comes to.
func (s *server) follow(w http.ResponseWriter, r *http.Request) error {
	id, err := futureAt(r)
	if err != nil {
		return err
	}
	e := eventStream{w: w}
	ctx, cancel := s.Waiting(r.Context(), maxFollow)
	defer cancel()
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		e.beat(ctx)
	}()
	err = s.client.Follow(ctx, id, func(futures.View) error {
		row, err := s.client.Cluster().Get(ctx, id)
		if err != nil {
			return err
		}
		view, err := View(ctx, s.client.Cluster(), &row)
		if err != nil {
			return err
		}
		return e.send(&view, row.State().Terminal())
	})
	ended := ctx.Err() != nil
	cancel()
	<-beating
	switch {
	case !e.begun:
		return err
	case err != nil && !ended:
		return stack.ErrCut
	}
	return nil
}

// beatTime is the longest silence of a stream of events.
const beatTime = 15 * time.Second

// eventStream is an answer of server-sent events.
type eventStream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	begun bool
	sent  time.Time
}

// beat sends empty comments while there is nothing to say, until ctx ends.
func (e *eventStream) beat(ctx context.Context) {
	tick := time.NewTicker(beatTime / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		e.mu.Lock()
		if e.begun && time.Since(e.sent) >= beatTime/2 {
			_ = e.write(":\n\n") // that the reader has gone is found by the next event, or by ctx
		}
		e.mu.Unlock()
	}
}

// write is called under mu.
func (e *eventStream) write(text string) error {
	e.sent = time.Now()
	_, err := io.WriteString(e.w, text)
	return errors.Join(err, http.NewResponseController(e.w).Flush())
}

func (e *eventStream) send(view *Future, over bool) error {
	data, err := json.Marshal(view)
	if err != nil {
		return err
	}
	name := "progress"
	if over {
		name = "over"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("X-Accel-Buffering", "no")
		e.w.WriteHeader(http.StatusOK)
	}
	return e.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, data))
}
