package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// beatTime is the longest silence of a stream of events.
const beatTime = 15 * time.Second

// Follow answers with the server-sent events that follow sends: "progress", or "over" for the
// last, each with a value as data. The answer begins with the first of them: an error before it
// is a problem. Its context ends after most, when the server stops, or when the client has gone.
func (s *Stack) Follow(w http.ResponseWriter, r *http.Request, most time.Duration,
	follow func(ctx context.Context, send func(value any, over bool) error) error,
) error {
	e := eventStream{w: w}
	ctx, cancel := s.Waiting(r.Context(), most)
	defer cancel()
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		e.beat(ctx)
	}()
	err := follow(ctx, e.send)
	ended := ctx.Err() != nil
	cancel()
	<-beating
	switch {
	case !e.begun:
		return err
	case err != nil && !ended:
		return ErrCut
	}
	return nil
}

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

func (e *eventStream) send(value any, over bool) error {
	data, err := json.Marshal(value)
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
