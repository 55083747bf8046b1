package rest

import (
	"context"
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
	// lookTime is how often it is read from one that does.
	lookTime = 15 * time.Second
)

// events streams the state of a batch until it is over.
func (s *server) events(w http.ResponseWriter, r *http.Request, id string) error {
	v, err := s.view(r.Context(), id)
	if err != nil {
		return err
	}
	return s.Follow(w, r, 365*24*time.Hour, func(ctx context.Context, send func(any, bool) error) error {
		changed := func(v *BatchView) error {
			shown := *v
			shown.Config.Stdin = ""
			return send(&shown, v.Status.Over())
		}
		if err := changed(&v); err != nil {
			return err
		}
		_, err := s.follow(ctx, v, changed)
		return err
	})
}

// follow calls changed with the state of a batch whenever it differs from v,
// until the batch is over or ctx ends. It returns the last state.
func (s *server) follow(ctx context.Context, v BatchView, changed func(*BatchView) error) (BatchView, error) {
	changes, stop, tells, err := s.head.Store().Watch(ctx, v.ID)
	if err != nil {
		return v, following(ctx, err)
	}
	if stop != nil {
		defer stop()
	}
	every := lookTime
	if !tells {
		changes, every = nil, pollTime
	}
	look := time.NewTicker(every)
	defer look.Stop()
	gap := time.NewTimer(0)
	defer gap.Stop()
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
		if !differs {
			continue
		}
		if err := changed(&v); err != nil {
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
