package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// executeAnswer is the outcome of a single execution, as in b7s.
type executeAnswer struct {
	Code      string `json:"code" doc:"200; 206 if too few answered; 202 while it runs; 408, 410 or 500 if it failed"`
	RequestID string `json:"request_id,omitempty" format:"uuid" doc:"What to ask for later"`
	Message   string `json:"message,omitempty"`
	// Results are merged by their output, the most frequent first.
	Results []peersBody    `json:"results,omitempty" doc:"One for each output, the most frequent first"`
	Cluster executeCluster `json:"cluster"`
}

type peersBody struct {
	Result    outputBody `json:"result"`
	Peers     []string   `json:"peers" doc:"The workers that had this output"`
	Frequency float64    `json:"frequency" doc:"The share of the answers that have it, in percent"`

	Usage map[string]usageBody `json:"usage,omitempty" doc:"By peer, as far as the worker knows it"`
}

type executeCluster struct {
	Peers []string `json:"peers,omitempty" doc:"The workers that it runs on"`
}

// executed answers with what became of an execution, whose first future is id.
func (s *server) executed(w http.ResponseWriter, r *http.Request, id futures.ID) error {
	row, err := s.options.Client.Cluster().Get(r.Context(), id)
	if err != nil {
		return err
	}
	rows := []layout.Row{row}
	nodes, threshold := nodesOf(row.Spec.Tags)
	if nodes > 1 {
		ids := make([]layout.ID, nodes)
		for i := range ids {
			ids[i] = layout.Neighbour(id, i)
		}
		if rows, err = s.options.Client.Cluster().GetMany(r.Context(), ids); err != nil {
			return err
		}
	}
	gathered := &answers{server: s, distinct: map[[sha256.Size]byte]int{}, seen: map[string]bool{}}
	gathered.over = nodes - len(rows) // what was removed was over
	if err := gathered.collect(r.Context(), rows); err != nil {
		return err
	}
	answer := &executeAnswer{RequestID: id.String()}
	if nodes > 1 {
		answer.Code, answer.Message = gathered.code(nodes, threshold)
	} else {
		answer.Code, answer.Message = codeOfOne(&rows[0])
	}
	gathered.fill(answer)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if writeSpliced(w, answer, gathered.splices()...) != nil {
		return stack.ErrCut
	}
	return nil
}

const askLater = ": ask again, by POST " + functionsPath + "/requests/result"

// codeOfOne is the code of an execution on one worker.
func codeOfOne(row *layout.Row) (code, message string) {
	ending := row.Ending()
	code = strconv.Itoa(futurestore.CodeOf(&ending))
	switch {
	case !ending.Over():
		message = "it is " + ending.State.String() + askLater
	case ending.Failure != nil:
		message = futurestore.ReasonOf(ending.Failure)
	}
	return code, message
}

// answers are those of the workers of one execution.
type answers struct {
	server *server
	merged []merged
	// distinct are the indexes in merged by output.
	distinct map[[sha256.Size]byte]int
	// seen are the peers that have answered; of two answers of one the first counts.
	seen  map[string]bool
	peers []string
	over  int // futures that are, or were
	good  int // answers without a failure
}

// merged is one output, and the peers that had it.
type merged struct {
	peersBody
	splices []splice
}

// collect reads the results one after the other, and keeps one of each.
func (a *answers) collect(ctx context.Context, rows []layout.Row) error {
	names, err := a.server.peerNames(ctx, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		ending := rows[i].Ending()
		worker := workerOf(&rows[i], &ending)
		peer := cmp.Or(names[worker], string(worker))
		if peer != "" && !slices.Contains(a.peers, peer) {
			a.peers = append(a.peers, peer)
		}
		if !ending.Over() {
			continue
		}
		a.over++
		if ending.Worker() == "" && len(rows) > 1 || a.seen[peer] {
			continue // no worker has answered, or this one has before
		}
		a.seen[peer] = true
		if err := a.add(ctx, peer, ending); err != nil {
			return err
		}
	}
	return nil
}

// workerOf is the worker that has run a future, runs it, or is to.
func workerOf(row *layout.Row, e *layout.Ending) layout.WorkerID {
	if e.Over() {
		return e.Worker()
	}
	if row.Claim != nil {
		return row.Claim.Worker
	}
	return row.Attempts.Assigned
}

func (a *answers) add(ctx context.Context, peer string, ending layout.Ending) error {
	held := 2 * ending.Size()
	if err := stack.Reserve(ctx, held); err != nil {
		return err
	}
	if err := results.Of(a.server.options.Client.Cluster()).Load(ctx, &ending); err != nil {
		return err
	}
	if ending.Failure == nil {
		a.good++
	}
	out := futurestore.ResultOf(&ending)
	hash := outputHash(&out)
	at, known := a.distinct[hash]
	if known {
		stack.Return(ctx, held)
	} else {
		at = len(a.merged)
		a.distinct[hash] = at
		body, splices := outputOf(&out)
		a.merged = append(a.merged, merged{
			peersBody: peersBody{Result: body, Peers: []string{}, Usage: map[string]usageBody{}}, splices: splices,
		})
	}
	if peer != "" {
		m := &a.merged[at]
		m.Peers, m.Usage[peer] = append(m.Peers, peer), usageOf(&out.Usage)
	}
	return nil
}

// outputHash is the same for results with the same output and exit code.
func outputHash(r *batch.Result) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d ", r.ExitCode, len(r.Stdout), len(r.Stderr))
	h.Write([]byte(r.Stdout))
	h.Write([]byte(r.Stderr))
	return [sha256.Size]byte(h.Sum(nil))
}

// code is that of an execution on several workers: as in b7s, a share of them must
// have answered.
func (a *answers) code(nodes int, threshold float64) (code, message string) {
	answered := len(a.seen)
	said := fmt.Sprintf("%d of %d workers have answered", answered, nodes)
	switch enough := float64(answered) >= threshold*float64(nodes) && answered > 0; {
	case enough && a.good == 0 && a.over == nodes:
		return strconv.Itoa(http.StatusInternalServerError), "each answer is a failure"
	case enough && answered == nodes:
		return strconv.Itoa(http.StatusOK), ""
	case enough && a.over < nodes:
		return strconv.Itoa(http.StatusOK), said + askLater
	case enough:
		return strconv.Itoa(http.StatusOK), said
	case a.over < nodes:
		return strconv.Itoa(http.StatusAccepted), said + askLater
	case answered == 0:
		return strconv.Itoa(http.StatusNoContent), said
	default:
		return strconv.Itoa(http.StatusPartialContent), said
	}
}

// fill adds the results to an answer.
func (a *answers) fill(to *executeAnswer) {
	slices.SortStableFunc(a.merged, func(x, y merged) int { return len(y.Peers) - len(x.Peers) })
	for i := range a.merged {
		m := &a.merged[i]
		m.Frequency = 100 * float64(max(len(m.Peers), 1)) / float64(max(len(a.seen), 1))
		to.Results = append(to.Results, m.peersBody)
	}
	to.Cluster.Peers = a.peers
}

// splices are the outputs, in the order of the results.
func (a *answers) splices() (all []splice) {
	for i := range a.merged {
		all = append(all, a.merged[i].splices...)
	}
	return all
}
