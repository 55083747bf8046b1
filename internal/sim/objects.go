package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
	"github.com/futura-run/futura/workers"
)

// maxReferred is how many inputs one future refers to at most, and longestReferring
// the longest arguments that have references in them.
const (
	maxReferred      = 8
	longestReferring = 100
)

// drawObjectMemory draws the size of a worker's object store: most have room, some
// little, and some have none.
func (w *world) drawObjectMemory() int64 {
	switch w.random.IntN(6) {
	case 0:
		return 0
	case 1:
		return 2 << 10
	}
	return 1 << 20
}

// dress decides whether the result of a request is an object, and whether its
// arguments refer to its inputs.
func (w *world) dress(r *request) error {
	s := &r.submission
	r.name = s.Args
	if w.random.IntN(2) == 0 {
		s.Spec.AsObject, s.Spec.AllowReconstruction = true, w.random.IntN(8) > 0
	}
	if n := len(s.Inputs); n == 0 || n > maxReferred || len(s.Args) > longestReferring || w.random.IntN(4) == 0 {
		return nil
	}
	parts := []any{string(s.Args)}
	for _, id := range s.Inputs {
		r.refers = append(r.refers, id)
		parts = append(parts, map[string]any{reference.Member: id.String()})
	}
	args, err := json.Marshal(parts)
	s.Spec.Codec, s.Args = layout.CodecJSON, args
	return err
}

// again reports whether what has ended may go on: somebody may find the result lost.
func (r *request) again() bool { return r.retried > 0 || r.submission.Spec.AsObject }

// content is the result of a run of a request, or what is put. That of an object tells
// its runs apart.
func (r *request) content(run int) string {
	if r.isPut() {
		return string(r.name)
	}
	content := string(outcomeOf(r.name))
	if r.submission.Spec.AsObject {
		content = fmt.Sprintf("%s#%d", content, run)
	}
	return content
}

// encoded is a content as the worker stores it.
func (r *request) encoded(content string) []byte {
	if r.submission.Spec.Codec == layout.CodecJSON {
		b, _ := json.Marshal(content) // strings always encode
		return b
	}
	return []byte(content)
}

// runOf returns which run of the request a content comes from, 0 for one whose runs
// have all the same, and false if it is not a content of it.
func (r *request) runOf(content string) (run int, ok bool) {
	if !r.submission.Spec.AsObject || r.isPut() {
		return 0, content == r.content(0)
	}
	outcome, number, _ := strings.Cut(content, "#")
	run, err := strconv.Atoi(number)
	return run, err == nil && outcome == string(outcomeOf(r.name))
}

// runKey is one claim of a future.
type runKey struct {
	id    layout.ID
	token layout.Token
}

// objectLog is what is known of objects outside of the store.
type objectLog struct {
	runs     map[runKey]int                      // the number of the run of a claim
	tokens   map[layout.ID][]layout.Token        // the claims, by the number of their run
	floors   map[runKey]map[layout.ID]int        // the runs that inputs had the results of when a claim began
	results  map[layout.ID]map[layout.Token]bool // that were seen
	losses   map[layout.ID]map[layout.Token]bool // that were to be removed as lost
	rebuilt  map[layout.ID]int                   // as counted when last seen
	futures  map[string]layout.ID                // by the name of an object
	recorded []heldObject                        // copies
	holders  map[heldResult]bool                 // that ever had one
	dropped  map[heldObject]bool
}

// heldObject is an object at a worker.
type heldObject struct {
	worker layout.WorkerID
	object string
}

// heldResult is a result of a future at a worker.
type heldResult struct {
	worker layout.WorkerID
	id     layout.ID
}

func newObjectLog() objectLog {
	return objectLog{
		runs: map[runKey]int{}, tokens: map[layout.ID][]layout.Token{}, floors: map[runKey]map[layout.ID]int{},
		results: map[layout.ID]map[layout.Token]bool{}, losses: map[layout.ID]map[layout.Token]bool{},
		rebuilt: map[layout.ID]int{}, futures: map[string]layout.ID{}, dropped: map[heldObject]bool{},
		holders: map[heldResult]bool{},
	}
}

// began numbers the run of a claim.
func (o *objectLog) began(info *workers.Info) (run int) {
	o.tokens[info.ID] = append(o.tokens[info.ID], info.Token)
	run = len(o.tokens[info.ID])
	o.runs[runKey{info.ID, info.Token}] = run
	return run
}

// saw notes a result.
func (o *objectLog) saw(id layout.ID, token layout.Token) {
	if o.results[id] == nil {
		o.results[id] = map[layout.Token]bool{}
	}
	o.results[id][token] = true
}

// takeArguments checks the results in the arguments of a future that starts, and
// returns what tells its runs from those of others.
func (w *world) takeArguments(ctx context.Context, args []byte) []byte {
	info, _ := workers.InfoFrom(ctx)
	r := w.client.byID[info.ID]
	if r == nil || r.submission.Spec.Codec != layout.CodecJSON {
		return args
	}
	var parts []string
	if err := json.Unmarshal(args, &parts); err != nil || len(parts) != 1+len(r.refers) {
		w.broken = append(w.broken, fmt.Errorf("future %s gets the arguments %.100q", info.ID, args))
		return r.name
	}
	floors := w.objects.floors[runKey{info.ID, info.Token}]
	for i, id := range r.refers {
		input, content := w.client.byID[id], parts[1+i]
		run, right := input.runOf(content)
		if !right || run < floors[id] || run > len(w.objects.tokens[id]) {
			w.broken = append(w.broken, fmt.Errorf("future %s gets %.100q of input %s, which had the result of run %d", info.ID,
				content, id, floors[id]))
			continue
		}
		if input.submission.Spec.AsObject {
			w.report.Taken++
			w.moveSome(ctx, input)
		}
	}
	return []byte(parts[0])
}

// output is the result of a run of a client's future.
func (w *world) output(info *workers.Info, run int, value []byte) []byte {
	r := w.client.byID[info.ID]
	if r == nil || !bytes.Equal(value, outcomeOf(r.name)) {
		return value
	}
	return r.encoded(r.content(run))
}
