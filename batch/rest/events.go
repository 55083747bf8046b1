package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"net/http"
	"reflect"
	"time"
)

// Times of following a batch.
const (
	// eventGap is the least time between two events.
	eventGap = 200 * time.Millisecond
	// pollTime is how often a batch is read from a store that can't report
	// changes.
	pollTime = 500 * time.Millisecond
	// beatTime is the longest silence of a stream of events.
	beatTime = 15 * time.Second
)

// events streams the state of a batch until it is over.
func (s *server) events(w http.ResponseWriter, r *http.Request, id string) error {
	v, err := s.view(r.Context(), id)
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	send := func(v *BatchView) error {
		if v == nil {
			_, err = fmt.Fprint(w, ":\n\n")
			return errors.Join(err, control.Flush())
		}
		shown := *v
		shown.Config.Stdin = ""
		data, err := json.Marshal(&shown)
		if err != nil {
			return err
		}
		name := "progress"
		if v.Status.Over() {
			name = "over"
		}
		_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		return errors.Join(err, control.Flush())
	}
	if err := send(&v); err != nil {
		return stack.ErrCut
	}
	ctx, cancel := s.Waiting(r.Context(), 365*24*time.Hour)
	defer cancel()
	if _, err := s.follow(ctx, v, send); err != nil {
		return stack.ErrCut
	}
	return nil
}

// follow calls changed with the state of a batch whenever it differs from v,
// and with nil if nothing has changed for a while, until the batch is over or
// ctx ends. It returns the last state.
func (s *server) follow(ctx context.Context, v BatchView, changed func(*BatchView) error) (BatchView, error) {
	changes, stop, tells, err := s.head.Store().Watch(ctx, v.ID)
	if err != nil {
		return v, following(ctx, err)
	}
	if stop != nil {
		defer stop()
	}
	every := beatTime
	if !tells {
		changes, every = nil, pollTime
	}
	look := time.NewTicker(every)
	defer look.Stop()
	gap := time.NewTimer(0)
	defer gap.Stop()
	quiet := time.Now()
	for first := true; !v.Status.Over(); first = false {
		if !first {
			select {
			case <-changes:
			case <-look.C:
			case <-ctx.Done():
				return v, nil
			}
		}
		select {
		case <-gap.C:
		case <-ctx.Done():
			return v, nil
		}
		gap.Reset(eventGap)
		now, err := s.view(ctx, v.ID)
		if err != nil {
			return v, following(ctx, err)
		}
		differs := !now.sameAs(&v)
		v = now
		switch {
		case differs:
			err, quiet = changed(&v), time.Now()
		case time.Since(quiet) >= beatTime-time.Second:
			err, quiet = changed(nil), time.Now()
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// following is the error of a look, nil if it failed because ctx has ended.
func following(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// sameAs reports whether only the clock has changed.
func (v *BatchView) sameAs(other *BatchView) bool {
	mine, o := *v, *other
	mine.Rate, mine.SecondsLeft, o.Rate, o.SecondsLeft = 0, nil, 0, nil
	return reflect.DeepEqual(mine, o)
}
