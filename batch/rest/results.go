package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// ItemView is the view of a work item.
type ItemView struct {
	Index     int          `json:"index" doc:"The place of its arguments in the batch, from 0"`
	ID        string       `json:"id" doc:"The MD5 of FUNCTION/METHOD ARGUMENTS; items that run the same share it"`
	Arguments []string     `json:"arguments"`
	Status    batch.Status `json:"status" doc:"0 created, 1 in progress, 100 done, -1 failed, -2 permanently failed"`
	State     string       `json:"state" enum:"created,in_progress,done,failed,permanently_failed"`
	Chunk     string       `json:"chunk,omitempty"`
	Worker    string       `json:"worker,omitempty"`
	Attempts  int          `json:"failed_attempts"`
	Reason    string       `json:"reason,omitempty"`
	Result    *StreamsView `json:"result,omitempty" doc:"That of the last attempt that ended"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// StreamsView is what an attempt left behind. Output that is not valid UTF-8 is
// in base64.
type StreamsView struct {
	Stdout       string `json:"stdout"`
	StdoutBase64 string `json:"stdout_base64,omitempty" doc:"Instead of stdout, if that is not UTF-8"`
	Stderr       string `json:"stderr,omitempty"`
	StderrBase64 string `json:"stderr_base64,omitempty" doc:"Instead of stderr, if that is not UTF-8"`
	LeftOut      int64  `json:"left_out,omitempty" doc:"With output: how many bytes of both are not here, at most"`
	ExitCode     int    `json:"exit_code"`

	Usage usageBody `json:"usage" doc:"As far as the worker knows it"`
}

// stateName is a state's name in answers and queries.
func stateName(s batch.Status) string { return strings.ReplaceAll(s.String(), " ", "_") }

func itemOf(i *batch.Item) ItemView {
	v := ItemView{
		Index: i.Index, ID: i.ID, Arguments: append([]string{}, i.Arguments...), Status: i.Status,
		State: stateName(i.Status), Chunk: i.Chunk, Worker: i.Worker, Attempts: i.Attempts, Reason: i.Reason,
		UpdatedAt: i.UpdatedAt.UTC(),
	}
	if i.Result != nil {
		v.Result = &StreamsView{LeftOut: i.LeftOut, ExitCode: i.Result.ExitCode, Usage: usageOf(&i.Result.Usage)}
		v.Result.Stdout, v.Result.StdoutBase64 = textOf(i.Result.Stdout)
		v.Result.Stderr, v.Result.StderrBase64 = textOf(i.Result.Stderr)
	}
	return v
}

func textOf(s string) (text, encoded string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}

// writeItem writes an item as JSON.
func writeItem(w io.Writer, i *batch.Item) error {
	if i.Result == nil {
		return json.NewEncoder(w).Encode(itemOf(i))
	}
	stdout := i.Result.Stdout
	shown, result := *i, *i.Result
	result.Stdout, shown.Result = "", &result
	v, field := itemOf(&shown), stdoutField
	if v.Result.Stdout = placeholder; !utf8.ValidString(stdout) {
		v.Result.Stdout, v.Result.StdoutBase64, field = "", placeholder, encodedField
	}
	if err := writeSpliced(w, &v, splice{field, stdout}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// itemList is a page of items.
type itemList struct {
	Items []ItemView `json:"items"`
	Next  *int       `json:"next,omitempty" doc:"What to send as from for the next page; left out at the end"`
}

// ndjson is the media type of a line of JSON for each item.
const ndjson = "application/x-ndjson"

func (s *server) results(w http.ResponseWriter, r *http.Request, id string) error {
	from, err := number(r, "from", 0, 0, batch.MaxItems)
	if err != nil {
		return err
	}
	states, err := parseStates(r.URL.Query().Get("state"))
	if err != nil {
		return err
	}
	b, err := s.head.Store().Get(r.Context(), id)
	if err != nil {
		return err
	}
	output, err := number(r, "output", wholeOutput, 0, maxOutput)
	if err != nil {
		return err
	}
	otherwise, most := 100, MaxPage
	streamed := strings.Contains(r.Header.Get("Accept"), ndjson)
	if streamed {
		otherwise, most = batch.MaxItems, batch.MaxItems
	}
	limit, err := number(r, "limit", otherwise, 1, most)
	if err != nil {
		return err
	}
	each := func(fn func(*batch.Item) error) error {
		if output != wholeOutput {
			return s.eachOutline(r.Context(), id, from, limit, output, states, fn)
		}
		return s.eachItem(r.Context(), id, from, limit, states, fn)
	}
	if streamed {
		return s.streamResults(w, each)
	}
	return s.pageResults(w, r, &b, limit, states, each)
}

// wholeOutput asks for whole outputs, and maxOutput is the most bytes of each stream otherwise: a page of so much is no
// larger than others.
const wholeOutput, maxOutput = -1, 8 << 10

// eachOutline calls fn with up to limit items from an index on, with at most so many bytes of each stream.
func (s *server) eachOutline(ctx context.Context, id string, from, limit, output int, states []batch.Status,
	fn func(*batch.Item) error,
) error {
	if err := stack.Reserve(ctx, batch.PageBytes); err != nil {
		return err
	}
	defer stack.Return(ctx, batch.PageBytes)
	for limit > 0 {
		items, err := s.head.Store().Outline(ctx, id, from, min(MaxPage, limit), output, states...)
		if err != nil || len(items) == 0 {
			return err
		}
		for i := range items {
			if err := fn(&items[i]); err != nil {
				return err
			}
		}
		from, limit = items[len(items)-1].Index+1, limit-len(items)
	}
	return nil
}

// parseStates reads states by their names or numbers, with commas between them.
func parseStates(text string) (states []batch.Status, err error) {
	if text == "" {
		return nil, nil
	}
	for _, name := range strings.Split(text, ",") {
		found := false
		for _, state := range batch.Statuses() {
			if name == stateName(state) || name == strconv.Itoa(int(state)) {
				states, found = append(states, state), true
			}
		}
		if !found {
			return nil, stack.BadRequest("state=%.40q: use created, in_progress, done, failed or permanently_failed, "+
				"or their numbers 0, 1, 100, -1, -2", name)
		}
	}
	return states, nil
}

// errFull ends a page that is as large as pages get.
var errFull = errors.New("the page is full")

// pageResults writes a page of items as each reads them.
func (s *server) pageResults(w http.ResponseWriter, r *http.Request, b *batch.Batch, limit int,
	states []batch.Status, each func(func(*batch.Item) error) error,
) error {
	out := &begun{w: w, media: "application/json"}
	n, last, size := 0, 0, int64(0)
	err := each(func(item *batch.Item) error {
		out.text(`{"items":[`, ",")
		if n, last, size = n+1, item.Index, size+item.Result.Size(); out.err != nil {
			return out.err
		}
		if err := writeItem(w, item); err != nil || size <= batch.PageBytes {
			return err
		}
		return errFull
	})
	if err != nil && !errors.Is(err, errFull) {
		return out.failed(err)
	}
	if n == 0 {
		out.text(`{"items":[`, "")
	}
	tail := "]}"
	if (err != nil || n == limit) && s.hasMore(r.Context(), b, last+1, states) {
		tail = fmt.Sprintf(`],"next":%d}`, last+1)
	}
	out.text("", tail)
	return nil
}

// hasMore reports whether a batch has items in some states, or in any, from an index on, also if that can't be read.
func (s *server) hasMore(ctx context.Context, b *batch.Batch, from int, states []batch.Status) bool {
	if len(states) == 0 || from >= b.Items {
		return from < b.Items
	}
	if stack.Reserve(ctx, batch.PageBytes) != nil {
		return true
	}
	defer stack.Return(ctx, batch.PageBytes)
	more, err := s.head.Store().Outline(ctx, b.ID, from, 1, 0, states...)
	return err != nil || len(more) > 0
}

// streamResults writes a line for each item. A stream that can't be completed is
// cut off.
func (s *server) streamResults(w http.ResponseWriter, each func(func(*batch.Item) error) error) error {
	out := &begun{w: w, media: ndjson}
	err := each(func(item *batch.Item) error {
		if s.Stopping() {
			return errStopping
		}
		if out.text("", ""); out.err != nil {
			return out.err
		}
		return writeItem(w, item)
	})
	if err != nil {
		return out.failed(err)
	}
	out.text("", "")
	return nil
}

// begun writes an answer whose beginning waits for the first item, since an error
// before that can still be answered.
type begun struct {
	w     http.ResponseWriter
	media string
	began bool
	err   error
}

// text writes first at the beginning, and then at each later call.
func (b *begun) text(first, then string) {
	if !b.began {
		b.began = true
		b.w.Header().Set("Content-Type", b.media)
		b.w.WriteHeader(http.StatusOK)
		then = first
	}
	if b.err == nil && then != "" {
		_, b.err = io.WriteString(b.w, then)
	}
}

// failed is the error of an answer that can't be completed.
func (b *begun) failed(err error) error {
	if b.began {
		return stack.ErrCut
	}
	return err
}
