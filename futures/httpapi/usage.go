package httpapi

import (
	"context"
	"net/http"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

const usagePath = "/api/v1/usage"

// usageDays is how many days a view of usage has unless it is told.
const usageDays = 30

// Used is what attempts have used that ended with a result or failed.
type Used struct {
	Items     int64 `json:"items" doc:"Attempts that ended with a result"`
	Failed    int64 `json:"failed" doc:"Attempts that failed"`
	RunMS     int64 `json:"run_ms" doc:"Run time in milliseconds, of all of them together"`
	CPUMS     int64 `json:"cpu_ms" doc:"Processor time in milliseconds, as far as it is known"`
	BytesIn   int64 `json:"bytes_in" doc:"Arguments"`
	BytesOut  int64 `json:"bytes_out" doc:"Results and standard error"`
	MemoryMax int64 `json:"memory_max_bytes" doc:"The most memory of one attempt, as far as it is known"`
}

// UsageRow is what was used on a day, or by a worker.
type UsageRow struct {
	Day    string `json:"day,omitempty" format:"date" doc:"Of UTC; left out by worker"`
	Worker string `json:"worker,omitempty" doc:"A worker's name, or a peer's libp2p peer id; left out by day"`
	Kind   string `json:"kind,omitempty" enum:"worker,peer" doc:"Left out by day"`
	Used
}

// UsageView is what was used in a cluster.
type UsageView struct {
	From  string     `json:"from" format:"date" doc:"The first day"`
	To    string     `json:"to" format:"date" doc:"The last day, which is included"`
	By    string     `json:"by" enum:"day,worker"`
	Rows  []UsageRow `json:"rows" doc:"By day, or by kind and name; a day without use has none"`
	Total Used       `json:"total"`
	// Incomplete is why the sums are too low.
	Incomplete string `json:"incomplete,omitempty" doc:"Why the sums are too low: the first record that can't be read"`
}

// usageBytes is what a row holds in memory, at most.
const usageBytes = 512

func (s *server) registerUsage() {
	stack.Register(s.Stack, stack.Read, operation(http.MethodGet, usagePath, "usage", "What was used, by day or by worker",
		"Of attempts that ended with a result or failed, as their workers have told with their last heartbeats."), s.usage)
}

type usageInput struct {
	From string `query:"from" doc:"The first day, of UTC, such as 2026-01-31. Default 29 days before the last"`
	To   string `query:"to" doc:"The last day. Default today; at most 400 days in all"`
	By   string `query:"by" enum:"day,worker" default:"day"`
}

func (s *server) usage(ctx context.Context, in *usageInput) (*body[*UsageView], error) {
	from, to, err := UsageDays(in.From, in.To, s.client.Cluster().Now())
	if err != nil {
		return nil, stack.BadRequest("%v", err)
	}
	more := func() error { return stack.Reserve(ctx, usageBytes) }
	return answerWith(ReadUsage(ctx, s.client, from, to, in.By, more))
}
