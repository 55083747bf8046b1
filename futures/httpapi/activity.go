package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/activity"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const activityPath = "/api/v1/activity"

// ActivityView is what happened in a cluster lately.
type ActivityView struct {
	From      time.Time          `json:"from" doc:"The beginning of the first point"`
	To        time.Time          `json:"to" doc:"The end of the last point, which is not over yet"`
	StepS     int                `json:"step_s" doc:"Seconds from one point to the next: 60 or 3600"`
	Points    []ActivityPoint    `json:"points" doc:"One for each step, in order"`
	Functions []ActivityFunction `json:"functions" doc:"By function and queue: 64 of them, and (other)"`
	Queues    []ActivityQueue    `json:"queues" doc:"By queue, those in which something ended or waits"`
}

// ActivityEnds are the ends of attempts and futures.
type ActivityEnds struct {
	Succeeded      int64 `json:"succeeded" doc:"Futures that got their results"`
	FailedAttempts int64 `json:"failed_attempts" doc:"Attempts that failed, tried again or not"`
	Failed         int64 `json:"failed" doc:"Futures that a worker saw fail for good, without cancelled ones"`
}

// ActivityTimes are how long attempts ran and had waited. They may be off by a factor of two.
type ActivityTimes struct {
	RunP50MS  float64 `json:"run_p50_ms" doc:"0 if it is unknown, and so are the others"`
	RunP99MS  float64 `json:"run_p99_ms"`
	WaitP50MS float64 `json:"wait_p50_ms" doc:"From the submit to the first attempt, of what waited for a worker alone"`
	WaitP99MS float64 `json:"wait_p99_ms"`
}

// ActivityCounts are how many futures there were when they were counted last, once a minute. All
// are left out if they were not counted.
type ActivityCounts struct {
	Waiting *int64 `json:"waiting,omitempty" doc:"Futures that waited for a worker"`
	Running *int64 `json:"running,omitempty" doc:"Futures that workers held"`
	Delayed *int64 `json:"delayed,omitempty" doc:"Futures that waited for a time"`
	Blocked *int64 `json:"blocked,omitempty" doc:"Futures that waited for the results of others"`
}

// ActivityPoint is what happened within one step.
type ActivityPoint struct {
	At time.Time `json:"at" doc:"Its beginning"`
	ActivityEnds
	RunMS int64 `json:"run_ms" doc:"Run time of the attempts in milliseconds, of all of them together"`
	ActivityCounts
}

// ActivityFunction is what happened of a function in a queue.
type ActivityFunction struct {
	Function string `json:"function"`
	Queue    string `json:"queue"`
	ActivityEnds
	ActivityTimes
}

// ActivityQueue is what happened in a queue.
type ActivityQueue struct {
	Queue string `json:"queue"`
	ActivityEnds
	ActivityTimes
	ActivityCounts
}

// activityBytes is what a row of a view holds in memory, at most.
const activityBytes = 512

// activitySpans are the spans of views.
func activitySpans() map[string]time.Duration {
	return map[string]time.Duration{
		"1h": time.Hour, "2h": 2 * time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour,
	}
}

// activitySteps are the steps in views.
func activitySteps() map[string]time.Duration {
	return map[string]time.Duration{"minute": time.Minute, "hour": time.Hour}
}

// activityAsked is what a view is asked for.
type activityAsked struct{ span, step time.Duration }

// activityViews are the views that may be asked for, each read for all who ask at a time.
type activityViews map[activityAsked]*shared[*ActivityView]

func (s *server) registerActivity() {
	s.activity = activityViews{}
	for _, span := range activitySpans() {
		for _, step := range activitySteps() {
			s.activity[activityAsked{span, step}] = &shared[*ActivityView]{
				from: func(ctx context.Context) (*ActivityView, error) { return ReadActivity(ctx, s.client, span, step) },
			}
		}
	}
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, activityPath, "activity", "What happened lately",
		"By minute or by hour: how attempts ended, as their workers have told with their last heartbeats, how long they ran "+
			"and had waited, and how many futures there were."), s.activityView)
}

type activityInput struct {
	Last string `query:"last" enum:"1h,2h,24h,7d" default:"1h" doc:"The span, up to now"`
	By   string `query:"by" enum:"minute,hour" doc:"The step. Default minute for up to 2h, its most, otherwise hour"`
}

func (s *server) activityView(ctx context.Context, in *activityInput) (*body[*ActivityView], error) {
	span, step, err := ActivitySpan(in.Last, in.By)
	if err != nil {
		return nil, stack.BadRequest("%v", err)
	}
	view, err := s.activity[activityAsked{span, step}].read(ctx)
	if err == nil {
		err = stack.Reserve(ctx, int64(activityBytes*(len(view.Points)+len(view.Functions)+len(view.Queues))))
	}
	return answerWith(view, err)
}

// ActivitySpan returns the span and the step of a view that ends now. An empty step is the
// smallest one that there is for the span.
func ActivitySpan(last, by string) (span, step time.Duration, err error) {
	span, known := activitySpans()[last]
	if !known {
		return 0, 0, fmt.Errorf("last=%.40q: use 1h, 2h, 24h or 7d", last)
	}
	if by == "" {
		by = "hour"
		if span <= futures.MaxActivityMinutes {
			by = "minute"
		}
	}
	switch step = activitySteps()[by]; {
	case step == 0:
		return 0, 0, fmt.Errorf("by=%.40q: use minute or hour", by)
	case step == time.Minute && span > futures.MaxActivityMinutes:
		return 0, 0, fmt.Errorf("the last %s by minute: minutes are kept for %v: use by=hour, or last=1h or 2h", last,
			futures.MaxActivityMinutes)
	}
	return span, step, nil
}

// ReadActivity returns what happened within a span that ends now, by step.
func ReadActivity(ctx context.Context, c *futures.Client, span, step time.Duration) (*ActivityView, error) {
	now := c.Cluster().Now()
	series, err := c.Activity(ctx, now.Add(-span), now, step)
	if err != nil {
		return nil, err
	}
	view := &ActivityView{From: series.From, To: series.To, StepS: int(step.Seconds()), Functions: []ActivityFunction{}}
	for i := range series.Points {
		p := &series.Points[i]
		view.Points = append(view.Points, ActivityPoint{
			At: p.At, ActivityEnds: ActivityEnds{p.Succeeded, p.FailedAttempts, p.Failed}, RunMS: p.RunTime.Milliseconds(),
			ActivityCounts: countedOf(p.Counts),
		})
	}
	for i := range series.Pairs {
		p := &series.Pairs[i]
		view.Functions = append(view.Functions, ActivityFunction{p.Function, p.Queue, endsOf(p), timesOf(p)})
	}
	view.Queues = activityQueues(series)
	return view, nil
}

// activityQueues are the queues in which something ended or is waiting.
func activityQueues(series *futures.Activity) []ActivityQueue {
	queues := []ActivityQueue{}
	at := map[string]int{}
	queue := func(name string) *ActivityQueue {
		if _, known := at[name]; !known {
			at[name], queues = len(queues), append(queues, ActivityQueue{Queue: name})
			if !series.CountedAt.IsZero() {
				queues[at[name]].ActivityCounts = countedOf(&activity.QueueCounts{})
			}
		}
		return &queues[at[name]]
	}
	byQueue := series.ByQueue()
	for i := range byQueue {
		q := queue(byQueue[i].Queue)
		q.ActivityEnds, q.ActivityTimes = endsOf(&byQueue[i]), timesOf(&byQueue[i])
	}
	for i := range series.Counts {
		if n := &series.Counts[i]; n.Blocked+n.Ready+n.Delayed+n.Claimed > 0 {
			queue(n.Queue).ActivityCounts = countedOf(n)
		}
	}
	slices.SortFunc(queues, func(a, b ActivityQueue) int { return cmp.Compare(a.Queue, b.Queue) })
	return queues
}

func endsOf(p *activity.Pair) ActivityEnds {
	return ActivityEnds{p.Succeeded, p.FailedAttempts, p.Failed}
}

func timesOf(p *activity.Pair) ActivityTimes {
	at := func(h []int64, part float64) float64 {
		return math.Round(activity.Quantile(h, part).Seconds()*1e4) / 10
	}
	return ActivityTimes{at(p.Runs, 0.5), at(p.Runs, 0.99), at(p.Waits, 0.5), at(p.Waits, 0.99)}
}

// countedOf are the counts of a view, none if n is nil.
func countedOf(n *activity.QueueCounts) ActivityCounts {
	if n == nil {
		return ActivityCounts{}
	}
	return ActivityCounts{Waiting: &n.Ready, Running: &n.Claimed, Delayed: &n.Delayed, Blocked: &n.Blocked}
}
