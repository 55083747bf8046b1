package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// bulkTime is how long a request changes futures before it answers with a cursor.
const bulkTime = 2 * time.Second

// ListFilter says which futures a list has, or a request for many changes.
type ListFilter struct {
	State    State  `query:"state"`
	Queue    string `query:"queue"`
	Function string `query:"function" doc:"As submitted; an alias stands for its current module"`
	Tag      string `query:"tag" maxLength:"64"`
	Error    string `query:"error" maxLength:"200" doc:"A part of the last failure's message, or of its kind"`
	Label    string `query:"label" maxLength:"64" doc:"As forks of many have their name"`
	Lane     string `query:"lane" maxLength:"400" doc:"KIND/KEY"`
	Worker   string `query:"worker" maxLength:"64" doc:"The id of a worker that holds them, or had an attempt at them"`
	Batch    string `query:"batch" maxLength:"64" doc:"The batch whose items they are"`
	// Since and Until are parsed by the handler: an unreadable time is a problem of its own.
	Since string `query:"since" doc:"Submitted at this time or later, such as 2026-01-31T00:00:00Z"`
	Until string `query:"until" doc:"Submitted before this time"`
}

// errUnfiltered refuses a change of all futures.
func errUnfiltered() error {
	return stack.BadRequest("name the futures with state, queue, function, tag, error, label, lane, worker, since or " +
		"until")
}

// refuseEmpty refuses parameters of a filter without a value, which would select what has any: many futures are not
// changed for a variable of a script that is not set.
func refuseEmpty(ctx huma.Context) (problems []error) {
	u := ctx.URL()
	asked := u.Query()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ListFilter]()) {
		if name := field.Tag.Get("query"); slices.Contains(asked[name], "") {
			problems = append(problems, &huma.ErrorDetail{Location: "query." + name,
				Message: "it is empty: leave it out, or give it a value"})
		}
	}
	return problems
}

// Resolve implements huma.Resolver.
func (*bulkInput) Resolve(ctx huma.Context) []error { return refuseEmpty(ctx) }

// Resolve implements huma.Resolver.
func (*forkManyInput) Resolve(ctx huma.Context) []error { return refuseEmpty(ctx) }

// filter returns the filter of the model.
func (f *ListFilter) filter(ctx context.Context, c *fdbmodel.Cluster) (filter inspect.Filter, err error) {
	filter = inspect.Filter{
		Queue: f.Queue, Tag: f.Tag, Function: f.Function, Worker: layout.WorkerID(f.Worker), Owner: f.Batch,
		Error: f.Error, Label: f.Label,
	}
	if f.Lane != "" {
		if filter.Lane, err = layout.ParseLane(f.Lane); err != nil {
			return filter, err
		}
	}
	for _, bound := range []struct {
		name, text string
		to         *time.Time
	}{{"since", f.Since, &filter.Since}, {"until", f.Until, &filter.Until}} {
		if bound.text == "" {
			continue
		}
		if *bound.to, err = time.Parse(time.RFC3339, bound.text); err != nil {
			return filter, stack.BadRequest("%s=%.40q is no time such as 2026-01-31T00:00:00Z", bound.name, bound.text)
		}
	}
	if f.State != "" {
		if filter.State, err = layout.ParseState(string(f.State)); err != nil {
			return filter, err
		}
	}
	return filter, filter.ResolveFunction(ctx, c)
}

// sumBytes is how many bytes at the beginning of a cursor say which list it is of.
const sumBytes = 4

// sum is the same for requests of one list. all are what its order depends on beside the filter.
func (f *ListFilter) sum(all ...bool) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v %t", *f, all))
	return sum[:sumBytes]
}

// cursorOf returns the model's cursor for that of a request, which is of the list with a sum. It returns
// layout.ErrBadCursor for one of another list.
func cursorOf(text string, sum []byte) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	cursor, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, stack.BadRequest("cursor %.40q is not one of this list", text)
	}
	if rest, is := bytes.CutPrefix(cursor, sum); is && len(rest) > 0 {
		return rest, nil
	}
	return nil, fmt.Errorf("%w, or with the filter of the list that it is of: cursor %.40q goes on with another one",
		layout.ErrBadCursor, text)
}

// cursorFor returns the cursor of a request for the model's, empty at the end.
func cursorFor(next, sum []byte) string {
	if len(next) == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(bytes.Clone(sum), next...))
}

type bulkInput struct {
	ListFilter
	Preview bool   `query:"preview" doc:"Change nothing, and say how many there are"`
	Reason  string `query:"reason" maxLength:"8192" doc:"The reason of a cancel, stored with the futures"`
	Cursor  string `query:"cursor" doc:"The cursor of the previous answer" maxLength:"100"`
}

// Bulk is what became of many futures.
type Bulk struct {
	Matched   int    `json:"matched" doc:"Futures that the filter found and that can be changed so"`
	Changed   int    `json:"changed" doc:"Those that were changed; running ones were asked to stop"`
	OfBatches int    `json:"of_batches" doc:"Items of batches that the filter found, which are left alone"`
	Cursor    string `json:"cursor,omitempty" doc:"More is left: send the request again with it"`
}

// bulkChange is a change of many futures.
type bulkChange struct {
	action, summary string
	permission      stack.Permission
	// wants reports whether it can be made of a future.
	wants func(*layout.Row) bool
	make  func(ctx context.Context, c *fdbmodel.Cluster, ids []futures.ID, reason string) (int, error)
}

// applied counts the futures that were changed.
func applied(outcomes []fdbmodel.Outcome, err error) (n int, _ error) {
	for _, o := range outcomes {
		if o == fdbmodel.Applied || o == fdbmodel.Requested {
			n++
		}
	}
	return n, err
}

func bulkChanges() []bulkChange {
	return []bulkChange{
		{"cancel", "Cancel all futures that a filter finds", stack.Submit,
			func(row *layout.Row) bool { return !row.State().Terminal() },
			func(ctx context.Context, c *fdbmodel.Cluster, ids []futures.ID, reason string) (int, error) {
				return applied(c.CancelMany(ctx, ids, reason))
			}},
		{"retry", "Retry all futures that a filter finds and that have failed, but not promises and cancelled ones",
			stack.Submit, func(row *layout.Row) bool {
				ending := row.Ending()
				return row.State() == layout.Failed && !ending.Cancelled() && row.Spec.Function != futures.FunctionPromise
			}, func(ctx context.Context, c *fdbmodel.Cluster, ids []futures.ID, _ string) (int, error) {
				return applied(c.RetryMany(ctx, ids))
			}},
		{"delete", "Delete all futures that a filter finds and that are over", stack.Admin,
			func(row *layout.Row) bool { return row.State().Terminal() },
			func(ctx context.Context, c *fdbmodel.Cluster, ids []futures.ID, _ string) (int, error) {
				return c.DiscardMany(ctx, ids)
			}},
	}
}

func (s *server) registerBulk() {
	for _, change := range bulkChanges() {
		stack.Register(s.Stack, change.permission, operation(http.MethodPost, futuresPath+":"+change.action,
			change.action+"-many", change.summary, "Answers after at most some seconds, with a cursor if more is left. "+
				"Items of batches are left alone. A filter is needed. What was changed before an error stays so."),
			func(ctx context.Context, in *bulkInput) (*body[Bulk], error) { return s.bulk(ctx, &change, in) })
	}
}

func (s *server) bulk(ctx context.Context, change *bulkChange, in *bulkInput) (*body[Bulk], error) {
	if in.ListFilter == (ListFilter{}) {
		return nil, errUnfiltered()
	}
	if in.Batch != "" {
		return nil, stack.BadRequest("items of a batch are changed with it: see /api/v1/batches/{id}")
	}
	c := s.client.Cluster()
	filter, err := in.filter(ctx, c)
	if err != nil {
		return nil, err
	}
	cursor, err := cursorOf(in.Cursor, in.sum())
	if err != nil {
		return nil, err
	}
	if err := stack.Reserve(ctx, listBytes); err != nil {
		return nil, err
	}
	out := &body[Bulk]{}
	apply := func(ids []futures.ID) error {
		if out.Body.Matched += len(ids); in.Preview {
			return nil
		}
		n, err := change.make(ctx, c, ids, in.Reason)
		out.Body.Changed += n
		return err
	}
	for end := time.Now().Add(bulkTime); ; {
		var items int
		if items, cursor, err = inspect.Sweep(ctx, c, filter, cursor, change.wants, apply); err != nil {
			return nil, err
		}
		out.Body.OfBatches += items
		if len(cursor) == 0 || time.Now().After(end) {
			out.Body.Cursor = cursorFor(cursor, in.sum())
			return out, nil
		}
	}
}
