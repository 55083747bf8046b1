package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

// Reason says in one word why a future is where it is.
type Reason string

// The reasons, in the order in which they are checked. A future that waits in a
// place without a reason here has the kind of the place as its reason.
const (
	ReasonRealized    Reason = "realized"    // it has its result
	ReasonFailed      Reason = "failed"      // it has failed permanently
	ReasonClaimed     Reason = "claimed"     // a worker holds it
	ReasonAwaiting    Reason = "awaiting"    // a worker holds it, and its function waits for other futures
	ReasonCircle      Reason = "circle"      // what its function waits for waits for it
	ReasonWorkerDead  Reason = "worker_dead" // a dead worker holds it; it is about to be taken back
	ReasonDelayed     Reason = "delayed"     // it is not due yet
	ReasonNoWorker           = Reason(fit.LackWorker)
	ReasonNoQueue            = Reason(fit.LackQueue)
	ReasonNoFunction         = Reason(fit.LackFunction)
	ReasonNoLabel            = Reason(fit.LackLabel)
	ReasonInfeasible         = Reason(fit.LackRoom)
	ReasonNoneFree    Reason = "none_free"    // such workers exist, and are busy
	ReasonDraining    Reason = "draining"     // such workers are stopping
	ReasonPassedOver  Reason = "passed_over"  // such workers have room, and rejected it a while ago
	ReasonStalled     Reason = "stalled"      // what such workers run waits for other futures, and keeps it from starting
	ReasonNoRoom      Reason = "store_full"   // the object stores of such workers are full
	ReasonAboutToMove Reason = "about_to_run" // such a worker has free resources
	ReasonAssigned    Reason = "assigned"     // it waits for one worker
	ReasonHeld        Reason = "held"         // it waits to be assigned
	ReasonLimit       Reason = "limit"        // as many futures run as the cluster allows
	ReasonBlocked     Reason = "blocked"      // it waits for the results of other futures
	ReasonUnresolved  Reason = "unresolved"   // it is a promise, and waits to be resolved
	ReasonPaused      Reason = "paused"       // its queue, or its function, is paused
	ReasonInLine      Reason = "in_line"      // it waits for its lane to admit it
	// ReasonUnreachable is that of a future whose result is an object which can't be
	// read from here. Explain itself reads none.
	ReasonUnreachable Reason = "unreachable"
)

// Explanation says why a future is not running, or where it runs.
type Explanation struct {
	ID     layout.ID    `json:"id"`
	State  layout.State `json:"state"`
	Reason Reason       `json:"reason"`
	// Text is the reason as a sentence, with a remedy if there is one.
	Text string `json:"text"`
	// Worker is the worker that holds or held it.
	Worker *fdbmodel.Member `json:"worker,omitempty"`
	// Holders are the workers that are alive and have its result, if that is an object.
	Holders []layout.WorkerID `json:"holders,omitempty"`
	// Ahead is the total number of ready futures in its queue.
	Ahead int64 `json:"ready_in_queue,omitempty"`
}

// Explain says why a future is not running. The future is read at one version,
// and the workers right after it. It returns ErrNotFound for an unknown future.
func Explain(ctx context.Context, c *fdbmodel.Cluster, id layout.ID) (Explanation, error) {
	row, err := c.Get(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	e, err := explainRow(ctx, c, row)
	if err != nil {
		return e, err
	}
	recorded, err := textSteps(ctx, c, &row)
	e.Text += recorded + textRefused(c, &row) + textLimit(&row) + textUnique(c, &row)
	return e, err
}

func explainRow(ctx context.Context, c *fdbmodel.Cluster, row layout.Row) (Explanation, error) {
	members, err := c.Workers(ctx)
	if err != nil {
		return Explanation{}, err
	}
	ending := row.Ending()
	e := Explanation{ID: row.ID, State: ending.State}
	if ending.Over() {
		e.Worker = findMember(members, ending.Worker())
	}
	switch e.State {
	case layout.Realized:
		e.Reason = ReasonRealized
		e.Text = fmt.Sprintf("It was realized by worker %s in attempt %d.", ending.Worker(), ending.Result.Attempt)
		if row.Spec.IsPromise() {
			e.Text = "It is a promise, and was resolved at " + timeOf(ending.Result.At) + "."
		}
		if row.Object() != "" {
			return e, explainObject(ctx, c, &e, &row)
		}
	case layout.Failed:
		remedy, err := wayOut(ctx, c, &row)
		if err != nil {
			return e, err
		}
		e.Reason = ReasonFailed
		e.Text = fmt.Sprintf("It failed for good (%s; failed attempts: %d): %s. %s",
			ending.Failure.Kind, row.Attempts.Failed, ending.Failure.Message, remedy)
	case layout.Claimed:
		return e, explainClaimed(ctx, c, &e, &row, members)
	case layout.Blocked:
		if row.Spec.IsPromise() {
			return e, explainPromise(ctx, c, &e)
		}
		e.Reason = ReasonBlocked
		e.Text, err = textBlocked(ctx, c, &row)
		return e, err
	case layout.Delayed:
		e.Reason, e.Text = ReasonDelayed, textDelayed(c, &row)
	default:
		return e, explainOpen(ctx, c, &e, &row, members)
	}
	return e, nil
}

// explainOpen says why a future that is ready does not run.
func explainOpen(ctx context.Context, c *fdbmodel.Cluster, e *Explanation, row *layout.Row, members []fdbmodel.Member,
) error {
	counts, err := c.Counts(ctx)
	if err != nil {
		return err
	}
	for k, n := range counts {
		if k.Queue == row.Spec.Queue && k.State == layout.Ready {
			e.Ahead += n
		}
	}
	paused, err := textPaused(ctx, c, row)
	if err != nil {
		return err
	}
	switch {
	case row.InLine():
		err = explainInLine(ctx, c, e)
	case row.Attempts.Unplaceable:
		err = explainUnplaceable(ctx, c, e, row, members)
	default:
		explainWaiting(c, e, row, members)
		if err = explainLimit(ctx, c, e, counts); paused != "" { // even if a worker could take it
			e.Reason, e.Text = ReasonPaused, paused
		}
		return err
	}
	if paused != "" {
		e.Text += " " + paused
	}
	return err
}

// textPaused says that the queue or the function of a future is paused, if it is.
func textPaused(ctx context.Context, c *fdbmodel.Cluster, row *layout.Row) (string, error) {
	list, err := pauses.Of(c).List(ctx)
	if err != nil {
		return "", err
	}
	p, is := pauses.Find(list, row.Spec.Queue, row.Spec.Function)
	if !is {
		return "", nil
	}
	return "Its " + p.Text() + ".", nil
}

func explainWaiting(c *fdbmodel.Cluster, e *Explanation, row *layout.Row, members []fdbmodel.Member) {
	switch place, to := layout.PlaceOf(row), row.Attempts.Assigned; place.Kind {
	case layout.PlaceAssigned:
		e.Worker = findMember(members, to)
		e.Reason, e.Text = ReasonAssigned, fmt.Sprintf("It waits for worker %s, to which it was assigned.", to)
		if row.Spec.MustBeNear {
			e.Text = fmt.Sprintf("It waits for worker %s, which has the result of future %s, that it must be near.", to,
				row.Spec.Near)
		}
		if e.Worker == nil || !e.Worker.Alive {
			e.Reason, e.Text = ReasonWorkerDead,
				fmt.Sprintf("It waits for worker %s, which is dead; the janitor is about to move it.", to)
		}
	case layout.PlaceHeld:
		e.Reason, e.Text = ReasonHeld, fmt.Sprintf("It waits until its owner %q assigns it to a worker.", row.Spec.Owner)
	case layout.PlaceReady:
		e.Reason, e.Text = explainReady(row, c.Clock().Now(), members)
		if a := &row.Attempts; a.Near != "" {
			e.Text += fmt.Sprintf(" Other workers leave it to worker %s for %v, which has most bytes of what it takes.", a.Near,
				a.NearWait)
		}
	default:
		e.Reason, e.Text = Reason(place.Kind), fmt.Sprintf("It waits until %s.", place.Until)
	}
}

func findMember(members []fdbmodel.Member, id layout.WorkerID) *fdbmodel.Member {
	for i := range members {
		if members[i].ID == id {
			return &members[i]
		}
	}
	return nil
}

// namedInputs is how many of the inputs that a future waits for are named.
const namedInputs = 3

func textBlocked(ctx context.Context, c *fdbmodel.Cluster, row *layout.Row) (string, error) {
	n := row.Spec.CountInputs()
	if row.Blocked.Linked < n {
		return fmt.Sprintf("It is being linked to its inputs (%d of %d so far).", row.Blocked.Linked, n), nil
	}
	ids, more, err := edges.Of(c).WaitsFor(ctx, row.ID, namedInputs)
	if err != nil {
		return "", err
	}
	inputs, unreadable, err := readAll(ctx, c, ids)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return fmt.Sprintf("All of its inputs (%d) are over. The process that ended the last ones makes it ready, or "+
			"else a janitor does within a second.", n), nil
	}
	var names []string
	for i := range inputs {
		names = append(names, fmt.Sprintf("%s (%s, %v)", inputs[i].ID, inputs[i].Spec.Function, inputs[i].State()))
	}
	for _, id := range unreadable {
		names = append(names, id.String()+" (which can't be read)")
	}
	if more {
		names = append(names, "and others")
	}
	return fmt.Sprintf("It waits for those of its inputs (%d) that are not over: %s.", n, strings.Join(names, ", ")), nil
}

// farOff is the wait beyond which a date says more than a duration.
const farOff = 365 * 24 * time.Hour

func textDelayed(c *fdbmodel.Cluster, row *layout.Row) string {
	due := time.UnixMilli(row.Attempts.Due)
	text := fmt.Sprintf("It waits until %s", due.UTC().Format(time.RFC3339))
	if wait := due.Sub(c.Clock().Now()).Round(time.Second); wait > 0 && wait < farOff {
		text += fmt.Sprintf(" (%v from now)", wait)
	}
	if why := whyDelayed(row); len(why) > 0 {
		text += ", because " + strings.Join(why, ", or ")
	}
	return text + "."
}

// whyDelayed returns what may have delayed a future. Which of a failure, a death and a function that asked
// for it was the last one is not recorded.
func whyDelayed(row *layout.Row) (why []string) {
	if row.Attempts.Snoozed > 0 {
		why = append(why, "its function sleeps or asked to be run again later")
	}
	if x := row.Exception; x != nil && x.Attempt > 0 { // what ends a future that waits delays nothing
		return append(why, fmt.Sprintf("attempt %d failed (%s): %s", x.Attempt, x.Kind, x.Message))
	}
	if n := row.Attempts.Deaths.Len(); n > 0 {
		return append(why, fmt.Sprintf("worker %s died while it held it", row.Attempts.Deaths[n-1].Worker))
	}
	if row.Attempts.Rejected > 0 {
		why = append(why, "workers rejected it")
	}
	return why
}

// textRefused says which workers pass over a future that waits.
func textRefused(c *fdbmodel.Cluster, row *layout.Row) (text string) {
	if s := row.State(); s != layout.Ready && s != layout.Delayed {
		return ""
	}
	peers := false
	for _, r := range row.Attempts.Refused {
		if r.Until <= layout.Millis(c.Clock().Now()) {
			continue
		}
		text += fmt.Sprintf(" Passed over until %s by worker %s, which rejected it at %s.", clockTime(r.Until), r.Worker,
			clockTime(r.At))
		peers = peers || r.Peer != ""
	}
	if peers && row.Spec.ArgsSize > layout.MaxPeerArgs {
		text += fmt.Sprintf(" Its arguments have %d bytes, and a peer is sent at most %d: have a worker with access to the "+
			"store run it, or store the data elsewhere and pass where.", row.Spec.ArgsSize, layout.MaxPeerArgs)
	}
	return text
}

func clockTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) }

// explainReady says what the workers lack, or else why none takes the future.
func explainReady(row *layout.Row, now time.Time, members []fdbmodel.Member) (Reason, string) {
	spec := row.Needs()
	found := fit.Of(spec, members)
	if found.Lack != "" {
		return Reason(found.Lack), found.Text
	}
	found.Able = slices.DeleteFunc(found.Able, func(m *fdbmodel.Member) bool { return m.Heartbeat.Draining })
	if len(found.Able) == 0 {
		return ReasonDraining, "The workers that can run it are stopping. It waits for another one."
	}
	full, noRoom, passed := false, false, false
	for _, m := range found.Able {
		switch {
		case !m.Heartbeat.Free.Fit(spec.Requirements):
		case row.PassedOverBy(&m.WorkerInfo, now):
			passed = true
		case spec.AsObject && m.Heartbeat.NoRoom:
			noRoom = true
		case slices.Contains(m.Heartbeat.Full, spec.Function):
			full = true
		default:
			return ReasonAboutToMove, fmt.Sprintf("Worker %s has room for it; it is about to run.", m.ID)
		}
	}
	if passed {
		return ReasonPassedOver, "The workers that can run it and have room rejected it; others may take it at once."
	}
	if noRoom {
		return explainNoRoom(found.Able)
	}
	if full {
		return explainFull(found.Able, spec.Function)
	}
	if text := explainStored(found.Able, spec); text != "" {
		return ReasonNoRoom, text
	}
	return explainBusy(found.Able)
}

// explainBusy says what the workers do that could run a future.
func explainBusy(able []*fdbmodel.Member) (Reason, string) {
	waiting := 0
	for _, m := range able {
		beat := &m.Heartbeat
		if beat.Running == 0 || beat.Awaiting < beat.Running {
			return ReasonNoneFree, "The workers that can run it are busy. It waits for its turn."
		}
		waiting += beat.Awaiting
	}
	return ReasonStalled, fmt.Sprintf("All functions of the workers that can run it wait for other futures (%d of them), "+
		"and keep what it needs, such as memory. If they wait for this one, or for others behind it, none can end: "+
		"start another worker, or a larger one.", waiting)
}

// explainFull says why workers with room for a future of a function start none.
func explainFull(able []*fdbmodel.Member, function string) (Reason, string) {
	text := fmt.Sprintf("On the workers that can run it, so many runs of %s wait for other futures that no more of them "+
		"start. It waits until one of them goes on.", function)
	for _, m := range able {
		if m.Heartbeat.Awaiting < m.Heartbeat.Running {
			return ReasonNoneFree, text
		}
	}
	return ReasonStalled, text + " If they wait for this one, or for others behind it, none can end: start another " +
		"worker, or one with a higher MaxAwaiting."
}

// explainNoRoom says that workers have no room for another result as an object.
func explainNoRoom(able []*fdbmodel.Member) (Reason, string) {
	stored := int64(0)
	for _, m := range able {
		stored += m.Heartbeat.Stored
	}
	return ReasonNoRoom, fmt.Sprintf("Its result is to be an object, and the object stores of the workers that can run "+
		"it are full (%d bytes in all). It waits until some of those results are discarded; a worker whose store stays full "+
		"takes such futures one at a time, and stores their results with the cluster. Discard results, or give the "+
		"workers more room for them.", stored)
}

// explainStored says that results in the memory of workers that run nothing keep a
// future from running, and nothing if that is not so.
func explainStored(able []*fdbmodel.Member, spec *layout.Spec) string {
	for _, m := range able {
		beat := &m.Heartbeat
		if beat.Running > 0 || beat.Stored == 0 || beat.Free.RAM >= spec.Requirements.RAM {
			return ""
		}
	}
	return fmt.Sprintf("It needs %d bytes of memory, and results that the workers keep as objects take too much of "+
		"theirs. Discard results, or start a worker with more memory.", spec.Requirements.RAM)
}
