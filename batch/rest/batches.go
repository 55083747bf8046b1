package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// BatchView is the view of a batch.
type BatchView struct {
	ID          string       `json:"id" format:"uuid"`
	FunctionID  string       `json:"function_id"`
	Method      string       `json:"method,omitempty"`
	Config      batch.Config `json:"config" doc:"In lists and events without stdin"`
	MaxAttempts int          `json:"max_attempts" doc:"The lower of the user's and the operator's limit"`
	Items       int          `json:"items"`
	Status      batch.Status `json:"status" doc:"0 created, 1 in progress, 100 done, -2 cancelled"`
	State       string       `json:"state" enum:"created,running,done,partly_failed,failed,cancelled,empty"`
	Code        string       `json:"code" doc:"As in b7s: 202 until the batch is over, then 200, 206, 500 or 410"`
	Message     string       `json:"message,omitempty"`
	Reason      string       `json:"reason,omitempty" doc:"Why it waits, or was cancelled"`
	CreatedAt   time.Time    `json:"created_at"`
	FinishedAt  *time.Time   `json:"finished_at,omitempty"`
	Progress    countsView   `json:"progress"`
	Rate        float64      `json:"rate" doc:"Items ended per second since the first began; if cancelled, those done"`
	SecondsLeft *float64     `json:"seconds_left,omitempty" doc:"At that rate; left out until it is known"`
}

// countsView is how many items are in each state.
type countsView struct {
	Created           int `json:"created"`
	InProgress        int `json:"in_progress"`
	Done              int `json:"done"`
	Failed            int `json:"failed" doc:"Will be tried again"`
	PermanentlyFailed int `json:"permanently_failed"`
}

func countsOf(p batch.Progress) countsView {
	return countsView{p[batch.Created], p[batch.InProgress], p[batch.Done], p[batch.Failed], p[batch.PermanentlyFailed]}
}

func viewOf(b *batch.Batch, p batch.Progress) BatchView {
	o := outcomeOf(b, p)
	return BatchView{
		ID: b.ID, FunctionID: b.Template.FunctionID, Method: b.Template.Method, Config: b.Template.Config,
		MaxAttempts: b.MaxAttempts, Items: b.Items, Status: b.Status, State: o.name, Code: o.code, Message: o.message,
		Reason: b.Reason, CreatedAt: b.CreatedAt.UTC(), FinishedAt: httpapi.TimeIfAny(b.FinishedAt), Progress: countsOf(p),
	}
}

// view returns a batch with its rate.
func (s *server) view(ctx context.Context, id string) (BatchView, error) {
	b, p, err := s.look(ctx, id)
	if err != nil {
		return BatchView{}, err
	}
	v := viewOf(&b, p)
	chunks, err := s.head.Store().Chunks(ctx, id)
	if err != nil || len(chunks) == 0 {
		return v, err
	}
	began := chunks[0].CreatedAt
	for i := range chunks {
		if chunks[i].CreatedAt.Before(began) {
			began = chunks[i].CreatedAt
		}
	}
	end := time.Now()
	if v.FinishedAt != nil {
		end = *v.FinishedAt
	}
	v.estimate(ranOf(b.Status, p), end.Sub(began))
	return v, nil
}

// ranOf is how many items count for the rate. What a cancel has ended mostly did not run, and its
// count can't be told from that of items that failed for good.
func ranOf(s batch.Status, p batch.Progress) int {
	if s == batch.PermanentlyFailed {
		return p[batch.Done]
	}
	return p[batch.Done] + p[batch.PermanentlyFailed]
}

// A time left is said once so much has ended, and so long after the beginning: the
// first few items tell little about the others.
const (
	estimateItems = 5
	estimateAfter = 5 * time.Second
)

// estimate sets the rate, and from it the time left of a batch that runs.
func (v *BatchView) estimate(over int, took time.Duration) {
	if over == 0 || took <= 0 {
		return
	}
	v.Rate = float64(over) / took.Seconds()
	if !v.Status.Over() && v.Items >= over && over >= estimateItems && took >= estimateAfter {
		left := float64(v.Items-over) / v.Rate
		v.SecondsLeft = &left
	}
}

// getBatch returns a batch, with wait once it is over.
func (s *server) getBatch(w http.ResponseWriter, r *http.Request, id string) error {
	v, err := s.view(r.Context(), id)
	wait, wrong := httpapi.ParseWait(r.URL.Query().Get("wait"))
	if wrong != nil {
		return wrong
	}
	if err == nil && wait > 0 && !v.Status.Over() {
		ctx, cancel := s.Waiting(r.Context(), wait)
		defer cancel()
		v, err = s.follow(ctx, v, func(*BatchView) error { return nil })
	}
	if err != nil {
		return err
	}
	return stack.WriteJSON(w, http.StatusOK, v)
}

// batchBytes is what a batch with a large template holds in memory, listStep how
// many batches are read at a time.
const batchBytes, listStep = 100 << 10, 20

// BatchList is a page of batches.
type BatchList struct {
	Batches []BatchView `json:"batches"`
	Next    string      `json:"next,omitempty" doc:"What to send as after for the next page; left out at the end"`
}

func (s *server) listBatches(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 100, 1, MaxPage)
	if err != nil {
		return err
	}
	after, active := r.URL.Query().Get("after"), false
	switch text := r.URL.Query().Get("active"); text {
	case "", "false":
	case "true":
		active = true
	default:
		return stack.BadRequest("active=%.40q: use true or false", text)
	}
	if after != "" {
		if after, err = parseID(after); err != nil {
			return err
		}
	}
	list := BatchList{Batches: []BatchView{}}
	for left := limit; left > 0; left -= listStep {
		last, err := s.listSome(r.Context(), &list, active, after, min(left, listStep))
		if errors.Is(err, batch.ErrNotFound) {
			return stack.NewProblem(http.StatusNotFound, "not_found", err,
				"after names the batch %s, which does not exist any more: name the one before it, or list from the first", after)
		}
		if err != nil {
			return err
		}
		if last {
			return stack.WriteJSON(w, http.StatusOK, list)
		}
	}
	if more, err := s.behind(r.Context(), &list, active, after, 1); err != nil || len(more) > 0 {
		if list.Next = after; len(list.Batches) > 0 {
			list.Next = list.Batches[len(list.Batches)-1].ID
		}
	}
	return stack.WriteJSON(w, http.StatusOK, list)
}

// behind returns up to n batches behind those of a list, or behind after if it is empty. Those that were deleted
// since they were listed are left out.
func (s *server) behind(ctx context.Context, list *BatchList, active bool, after string, n int) ([]batch.Batch, error) {
	for i := len(list.Batches) - 1; i >= 0; i-- {
		found, err := s.head.Store().List(ctx, active, list.Batches[i].ID, n)
		if !errors.Is(err, batch.ErrNotFound) {
			return found, err
		}
	}
	return s.head.Store().List(ctx, active, after, n)
}

// listSome adds up to n batches to a list, behind those that it has, or behind after, without what their items read,
// and reports whether there are no more. One that is deleted meanwhile is left out.
func (s *server) listSome(ctx context.Context, list *BatchList, active bool, after string, n int) (last bool, _ error) {
	if err := stack.Reserve(ctx, int64(n)*batchBytes); err != nil {
		return false, err
	}
	found, err := s.behind(ctx, list, active, after, n)
	if err != nil {
		return false, err
	}
	paused, err := s.readPaused(ctx)
	if err != nil {
		return false, err
	}
	kept := int64(0)
	for i := range found {
		p, err := s.head.Store().Progress(ctx, found[i].ID)
		if errors.Is(err, batch.ErrNotFound) {
			continue
		}
		if err == nil {
			err = paused.explain(ctx, &found[i])
		}
		if err != nil {
			return false, err
		}
		v := viewOf(&found[i], p)
		v.Config.Stdin = ""
		for _, e := range v.Config.Environment {
			kept += int64(len(e.Name) + len(e.Value))
		}
		list.Batches = append(list.Batches, v)
	}
	stack.Return(ctx, int64(n)*batchBytes)
	return len(found) < n, stack.Reserve(ctx, 2*kept) // the list, and its JSON
}

// number reads a number of the query.
func number(r *http.Request, name string, otherwise, from, to int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < from || n > to {
		return 0, stack.BadRequest("%s=%.40q: use a number from %d to %d", name, text, from, to)
	}
	return n, nil
}

// reasonBody has the optional reason of a cancel.
type reasonBody struct {
	Reason string `json:"reason,omitempty" doc:"The reason, stored with the batch; at most 8,192 bytes"`
}

const maxReason = 8 << 10

func (s *server) cancelBatch(w http.ResponseWriter, r *http.Request, id string) error {
	var body reasonBody
	if r.ContentLength != 0 {
		if err := readJSON(r, smallBody, &body); err != nil {
			return err
		}
	}
	if len(body.Reason) > maxReason {
		return stack.BadRequest("reason has %d bytes: at most %d", len(body.Reason), maxReason)
	}
	if err := s.head.Cancel(r.Context(), id, cmp.Or(strings.TrimSpace(body.Reason), "by request")); err != nil {
		return err
	}
	v, err := s.view(r.Context(), id)
	if err != nil {
		return stack.Prefix(err, "batch %s was cancelled, and then", id)
	}
	return stack.WriteJSON(w, http.StatusOK, v)
}

// retried answers a retry.
type retried struct {
	Items int       `json:"items" doc:"How many items run again"`
	Batch BatchView `json:"batch"`
}

func (s *server) retryBatch(w http.ResponseWriter, r *http.Request, id string) error {
	n, err := s.head.Retry(r.Context(), id)
	if err != nil {
		return err
	}
	v, err := s.view(r.Context(), id)
	if err != nil {
		return stack.Prefix(err, "%d items of batch %s run again, and then", n, id)
	}
	return stack.WriteJSON(w, http.StatusOK, retried{n, v})
}

func (s *server) deleteBatch(w http.ResponseWriter, r *http.Request, id string) error {
	if err := s.head.Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// healthView is the health answer of b7s, with more fields.
type healthView struct {
	Code    int    `json:"code"`
	Type    string `json:"type" enum:"MsgHealthCheck"`
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

// healthTime is how long a healthy store may take to answer.
const healthTime = 5 * time.Second

func (s *server) health(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), healthTime)
	defer cancel()
	_, err := s.head.Store().List(ctx, true, "", 1)
	if err == nil && s.options.Client != nil {
		err = httpapi.CheckHealth(ctx, s.options.Client)
	}
	if err != nil {
		return stack.NewProblem(http.StatusServiceUnavailable, "store_unavailable", err,
			"the store does not answer: %s", err)
	}
	return stack.WriteJSON(w, http.StatusOK, healthView{http.StatusOK, "MsgHealthCheck", "ok", s.Version()})
}
