package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/clock"
)

// An execution on several workers is a future for each, assigned to it. They are made
// in one transaction, and their ids follow from the first one's, which is the
// execution's. Tags of the first say how many there are and how many must answer.
const (
	// maxNodes is how many futures one transaction makes.
	maxNodes         = layout.MaxSubmit
	nodesTag         = "b7s-nodes="
	thresholdTag     = "b7s-threshold="
	defaultThreshold = 0.6 // b7s's
)

// RollCallWait is how long an execution waits for as many workers as it asks for,
// unless Options say otherwise. It is b7s's.
const RollCallWait = 20 * time.Second

// rollCallLook is how often it looks for them.
const rollCallLook = 200 * time.Millisecond

// executeOnNodes runs a function on several workers, once on each.
func (s *server) executeOnNodes(w http.ResponseWriter, r *http.Request, e *execution) error {
	ctx, cancel := s.Waiting(r.Context(), MaxWait)
	defer cancel()
	name := rand.Text()
	if e.key != "" {
		name = "execution key " + s.options.Client.Cluster().Name() + " " + e.key
	}
	first := layout.BatchItemID("execution "+name, 0)
	nodes, err := s.repeated(ctx, first, e)
	if err == nil && nodes == 0 {
		var release func()
		nodes, release, err = s.assignNodes(ctx, first, e)
		defer release()
	}
	var few *tooFewWorkers
	if errors.As(err, &few) {
		return stack.WriteJSON(w, http.StatusOK, executeAnswer{
			Code: strconv.Itoa(http.StatusRequestTimeout), Message: few.Error(), Cluster: executeCluster{Peers: few.peers},
		})
	}
	if err != nil {
		return err
	}
	all := make([]*futures.Future, nodes)
	for i := range all {
		all[i] = s.options.Client.Future(layout.Neighbour(first, i))
	}
	_, err = s.options.Client.AwaitAll(ctx, all)
	if err != nil && ctx.Err() == nil && !errors.Is(err, futures.ErrFailed) {
		return err
	}
	return s.executed(w, r, first)
}

// repeated returns how many futures an execution has that was asked for before with
// the same key, 0 if there is none.
func (s *server) repeated(ctx context.Context, first layout.ID, e *execution) (nodes int, err error) {
	if e.key == "" {
		return 0, nil
	}
	row, err := s.options.Client.Cluster().Get(ctx, first)
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	args, err := s.options.Client.Cluster().Args(ctx, first, row.Spec)
	if err != nil {
		return 0, err
	}
	nodes, threshold := nodesOf(row.Spec.Tags)
	_, asked := nodesOf([]string{thresholdTagOf(e)})
	if row.Spec.Function != e.task.Function || !slices.Equal(row.Spec.Argv, e.task.Argv) ||
		!bytes.Equal(args, e.task.Args) || !maps.Equal(row.Spec.Env, e.task.Env) || threshold != asked ||
		row.Spec.Queue != futurestore.Queue(&e.template) ||
		e.template.Config.Nodes > 0 && e.template.Config.Nodes != nodes { // for -1 it depends on the workers of that time
		return 0, stack.NewProblem(http.StatusConflict, "id_in_use", nil,
			"the key was used for another request: use another key")
	}
	return nodes, nil
}

func thresholdTagOf(e *execution) string {
	return thresholdTag + strconv.FormatFloat(e.threshold, 'f', -1, 64)
}

// assignNodes makes the futures of an execution on the workers that answer a roll
// call, and returns how many there are. The workers count as having them until release
// is called. Of executions at once with one key, which may find other numbers of workers, one is made: the last
// future of each has the same unique name.
func (s *server) assignNodes(ctx context.Context, first layout.ID, e *execution) (_ int, release func(), _ error) {
	for {
		found, err := s.rollCall(ctx, e)
		if err != nil {
			return 0, func() {}, err
		}
		n := len(found)
		if e.template.Config.Nodes > 0 {
			n = e.template.Config.Nodes
		}
		workers, release := s.options.Choose(found, n, first.String())
		tasks := make([]futures.Task, len(workers))
		for i, w := range workers {
			tasks[i] = e.task
			tasks[i].ID, tasks[i].Worker = layout.Neighbour(first, i), layout.WorkerID(w.Worker)
		}
		tasks[0].Tags = []string{nodesTag + strconv.Itoa(len(tasks)), thresholdTagOf(e)}
		if e.key != "" {
			tasks[len(tasks)-1].Unique = &futures.Unique{Key: "execution " + first.String(), For: 2 * MaxWait}
		}
		made, err := s.options.Client.SubmitMany(ctx, tasks)
		if errors.Is(err, futures.ErrNotUnique) || err == nil && made[0].Existed() {
			if nodes, failed := s.repeated(ctx, first, e); failed != nil || nodes > 0 {
				return nodes, release, failed
			}
		}
		if !errors.Is(err, fdbmodel.ErrNotFound) && !errors.Is(err, layout.ErrUnfit) {
			return len(tasks), release, err
		}
		release() // one of them has gone since, and nothing was made
		if failed := clock.Sleep(ctx, clock.Real{}, rollCallLook); failed != nil {
			return 0, func() {}, err
		}
	}
}

// tooFewWorkers is the error of a roll call that not enough workers answer.
type tooFewWorkers struct {
	asked, found int
	invocation   string
	peers        []string
}

// Error implements error.
func (t *tooFewWorkers) Error() string {
	return fmt.Sprintf("not enough workers answered the roll call: %d of %d that can run %s; start more, or ask for fewer",
		t.found, t.asked, t.invocation)
}

// rollCall returns the workers that can run an execution, the least busy first. It waits
// until there are as many as that asks for, for -1 one.
func (s *server) rollCall(ctx context.Context, e *execution) ([]head.Candidate, error) {
	wait := s.options.RollCallWait
	wait = cmp.Or(wait, RollCallWait)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	look := time.NewTicker(rollCallLook)
	defer look.Stop()
	few := &tooFewWorkers{asked: max(e.template.Config.Nodes, 1), invocation: e.template.Invocation()}
	for {
		found, err := head.NewCluster(s.options.Client.Cluster()).RollCall(ctx, &e.template)
		switch {
		case ctx.Err() != nil:
			return nil, few
		case err != nil:
			return nil, err
		case len(found) >= few.asked && e.template.Config.Nodes > 0:
			return found, nil
		case len(found) > maxNodes:
			return nil, oneProblem([]complaint{refusal("config.number_of_nodes", fmt.Sprintf(
				"%d workers answer, and a single execution has at most %d; use a batch, or attributes", len(found), maxNodes))})
		case len(found) > 0 && e.template.Config.Nodes < 0:
			return found, nil
		}
		few.found, few.peers = len(found), nil
		for _, c := range found {
			few.peers = append(few.peers, c.PeerID())
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, few
		}
	}
}

// nodesOf returns how many futures an execution has, by the tags of its first, and the
// share of them that must answer. It returns 1 for any other future.
func nodesOf(tags []string) (nodes int, threshold float64) {
	nodes = 1
	for _, tag := range tags {
		if text, found := strings.CutPrefix(tag, nodesTag); found {
			if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= maxNodes {
				nodes = n
			}
		}
		if text, found := strings.CutPrefix(tag, thresholdTag); found {
			threshold, _ = strconv.ParseFloat(text, 64) // 0 for what is none
		}
	}
	if !(threshold > 0 && threshold <= 1) {
		threshold = defaultThreshold
	}
	return nodes, threshold
}

// peerNames returns what b7s calls the workers of futures, of those that are
// registered and have another id there.
func (s *server) peerNames(ctx context.Context, rows []layout.Row) (map[layout.WorkerID]string, error) {
	var ids []layout.WorkerID
	for i := range rows {
		ending := rows[i].Ending()
		if worker := workerOf(&rows[i], &ending); worker != "" && !slices.Contains(ids, worker) {
			ids = append(ids, worker)
		}
	}
	names := map[layout.WorkerID]string{}
	if len(ids) == 0 {
		return names, nil
	}
	infos, err := inspect.WorkerInfos(ctx, s.options.Client.Cluster(), ids)
	for id := range infos {
		if peer := infos[id].Labels[layout.LabelPeer]; peer != "" {
			names[id] = peer
		}
	}
	return names, err
}
