package httpapi

import (
	"context"
	"net/http"
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
	return s.Follow(w, r, maxFollow, func(ctx context.Context, send func(any, bool) error) error {
		return s.client.Follow(ctx, id, func(futures.View) error {
			row, err := s.client.Cluster().Get(ctx, id)
			if err != nil {
				return err
			}
			view, err := View(ctx, s.client.Cluster(), &row)
			if err != nil {
				return err
			}
			return send(&view, row.State().Terminal())
		})
	})
}
