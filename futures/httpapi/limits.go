package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const limitsPath = "/api/v1/limits"

// Limits are the limits of a cluster; 0 is no limit.
type Limits struct {
	_ struct{} `additionalProperties:"false"` // reject misspelt fields

	Pending   int64   `json:"pending" minimum:"0" required:"false" doc:"Futures that are blocked, ready or delayed"`
	Running   int64   `json:"running" minimum:"0" required:"false" doc:"Futures that workers hold"`
	Bytes     int64   `json:"bytes" minimum:"0" required:"false" doc:"Bytes that the store holds"`
	PerSecond float64 `json:"per_second" minimum:"0" required:"false" doc:"Futures submitted in a second"`
}

// LimitUsage is how much of the limits is used.
type LimitUsage struct {
	Pending int64  `json:"pending"`
	Running int64  `json:"running"`
	Bytes   *int64 `json:"bytes,omitempty" doc:"Left out if no process has measured it lately"`
}

// LimitsView is the limits of a cluster and their usage.
type LimitsView struct {
	Limits Limits     `json:"limits"`
	Used   LimitUsage `json:"used"`
}

// LimitsOf returns the view of limits.
func LimitsOf(l futures.Limits, u futures.LimitUsage) LimitsView {
	v := LimitsView{
		Limits: Limits{Pending: l.Pending, Running: l.Running, Bytes: l.Bytes, PerSecond: l.PerSecond},
		Used:   LimitUsage{Pending: u.Pending, Running: u.Running},
	}
	if u.HasBytes {
		v.Used.Bytes = &u.Bytes
	}
	return v
}

func (s *server) registerLimits() {
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, limitsPath, "limits", "The limits of the cluster",
		"And how much of them is used."), s.limits)
	stack.Register(s.Stack, stack.Admin, operation(http.MethodPut, limitsPath, "set-limits",
		"Set the limits of the cluster", "All of them: one that is left out or 0 limits nothing."), s.setLimits)
}

func (s *server) limits(ctx context.Context, _ *struct{}) (*body[LimitsView], error) {
	limits, used, err := s.client.Limits(ctx)
	return answerWith(LimitsOf(limits, used), err)
}

func (s *server) setLimits(ctx context.Context, in *body[Limits]) (*body[LimitsView], error) {
	b := &in.Body
	_, err := s.client.SetLimits(ctx, func(l *futures.Limits) {
		*l = futures.Limits{Pending: b.Pending, Running: b.Running, Bytes: b.Bytes, PerSecond: b.PerSecond}
	})
	if err != nil {
		return nil, err
	}
	return s.limits(ctx, nil)
}

// describeLimit says when to come back.
func describeLimit(err error, p *stack.Problem) {
	var limit *futures.LimitError
	if !errors.As(err, &limit) {
		return
	}
	about := map[string]any{"limit": limit.Limit, "max": limit.Max}
	if limit.Limit != quota.LimitRate {
		about["used"] = limit.Used
	}
	if after := limit.RetryAfter; after > 0 {
		about["retry_after_ms"] = max(1, after.Milliseconds())
		p.SetHeader("Retry-After", strconv.Itoa(max(1, int(math.Ceil(after.Seconds())))))
	}
	p.About = about
}

// inRoom calls submit with a context that lets it wait for room as long as a request
// asks for.
func (s *server) inRoom(ctx context.Context, text string, submit func(ctx context.Context, wait bool) error) error {
	wait, err := parseWait("wait_for_room", text)
	if err != nil {
		return err
	}
	if wait > 0 {
		waiting, cancel := s.Waiting(ctx, wait)
		defer cancel()
		ctx = waiting
	}
	return submit(ctx, wait > 0)
}
