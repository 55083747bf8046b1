// Package fit says which workers could run a future, and ends those that none could.
package fit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Lack is what keeps every worker of a cluster from ever running a future.
type Lack string

// The lacks, in the order in which they are looked for. They are also the
// reasons of an explanation.
const (
	LackWorker   Lack = "no_worker"   // no worker is registered
	LackQueue    Lack = "no_queue"    // none serves its queue
	LackFunction Lack = "no_function" // none of those knows its function
	LackLabel    Lack = "no_label"    // none of those has the labels that it requires
	LackRoom     Lack = "infeasible"  // none of those is large enough
)

// Fit says which workers could run a future, if nothing else ran.
type Fit struct {
	// Able are the workers that could.
	Able []*fdbmodel.Member
	// Lack is what the others lack, and Text says it in a sentence or two, with
	// what the future needs, what the workers have, and a remedy. Both are empty
	// if there is an able worker.
	Lack Lack
	Text string
	// Uncertain is set if there is none, but the records of some workers can't be
	// read: they may be able.
	Uncertain bool
}

// Of narrows workers down to those that could run a future with a spec.
func Of(spec *layout.Spec, members []fdbmodel.Member) Fit {
	var f Fit
	left := make([]*fdbmodel.Member, 0, len(members))
	for i := range members {
		if members[i].Alive {
			left = append(left, &members[i])
			f.Uncertain = f.Uncertain || members[i].Unreadable != ""
		}
	}
	if len(left) == 0 {
		return Fit{Lack: LackWorker, Text: "There is no worker in the cluster. Start one."}
	}
	for _, need := range needs {
		kept := slices.DeleteFunc(slices.Clone(left), func(m *fdbmodel.Member) bool { return !need.met(m, spec) })
		if len(kept) == 0 {
			f.Lack, f.Text = need.lack, need.text(spec, left)
			return f
		}
		left = kept
	}
	return Fit{Able: left}
}

// need is something that a worker must have to be able to run a future.
type need struct {
	lack Lack
	met  func(*fdbmodel.Member, *layout.Spec) bool
	// text describes the lack of all workers that have what comes before.
	text func(spec *layout.Spec, workers []*fdbmodel.Member) string
}

var needs = []need{
	{LackQueue,
		func(m *fdbmodel.Member, spec *layout.Spec) bool { return slices.Contains(m.Queues, spec.Queue) },
		func(spec *layout.Spec, workers []*fdbmodel.Member) string {
			return fmt.Sprintf("No worker serves the queue %q; they serve %s. Start one that does.", spec.Queue,
				some(workers, func(m *fdbmodel.Member) []string { return m.Queues }))
		}},
	{LackFunction,
		func(m *fdbmodel.Member, spec *layout.Spec) bool { return m.Runs(spec.Function) },
		func(spec *layout.Spec, workers []*fdbmodel.Member) string {
			return fmt.Sprintf("No worker of the queue %q knows the function %s; they know %s. Register it with one.",
				spec.Queue, spec.Function, some(workers, func(m *fdbmodel.Member) []string { return m.Functions }))
		}},
	{LackLabel,
		func(m *fdbmodel.Member, spec *layout.Spec) bool {
			return m.LabelSet().Have(layout.LabelText(spec.Requirements.Labels))
		},
		func(spec *layout.Spec, workers []*fdbmodel.Member) string {
			if id := spec.Requirements.Labels[layout.LabelNear]; id != "" {
				return fmt.Sprintf("It must be near the result of future %s, and none of the workers that have that can run "+
					"it. Give a worker that can run it a copy (futura clone), or submit it without that requirement.", id)
			}
			return fmt.Sprintf("No worker that knows its function has the labels %s; they have %s. Start one with them.",
				layout.LabelText(spec.Requirements.Labels), some(workers, labelsOf))
		}},
	{LackRoom,
		func(m *fdbmodel.Member, spec *layout.Spec) bool { return m.Capacity.Fit(spec.Requirements) },
		func(spec *layout.Spec, workers []*fdbmodel.Member) string {
			q := spec.Requirements
			return fmt.Sprintf("It needs %s, and no such worker is that large; one has %s. "+
				"Start a larger one.", amounts(q.CPU, q.RAM, q.GPU), largest(workers))
		}},
}

func labelsOf(m *fdbmodel.Member) []string {
	return slices.Collect(maps.Keys(m.LabelSet()))
}

func amounts(cpu, ram, gpu int64) string {
	return fmt.Sprintf("%d millicores, %d bytes of memory and %d milli-GPUs", cpu, ram, gpu)
}

// largest describes the workers by those that have the most of a resource.
func largest(workers []*fdbmodel.Member) string {
	var texts []string
	for _, resource := range []func(*fdbmodel.Member) int64{
		func(m *fdbmodel.Member) int64 { return m.Capacity.CPU }, func(m *fdbmodel.Member) int64 { return m.Capacity.RAM },
		func(m *fdbmodel.Member) int64 { return m.Capacity.GPU },
	} {
		most := slices.MaxFunc(workers, func(a, b *fdbmodel.Member) int { return cmp.Compare(resource(a), resource(b)) })
		c := most.Capacity
		if text := amounts(c.CPU, c.RAM, c.GPU); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", another ")
}

// maxNamed is the most names that a sentence lists.
const maxNamed = 8

// some lists what workers have.
func some(workers []*fdbmodel.Member, of func(*fdbmodel.Member) []string) string {
	var names []string
	for _, m := range workers {
		names = append(names, of(m)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "none"
	}
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Require returns layout.ErrUnfit, with the reason, for the first of specs that no
// registered worker could ever run; its worker may come later. Functions may be
// given by an alias. It returns fdbmodel.ErrNotFound for an unknown module or alias.
func Require(ctx context.Context, c *fdbmodel.Cluster, specs []layout.Spec) error {
	members, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	for i := range specs {
		spec := specs[i]
		if spec.Function, err = c.ResolveFunction(ctx, spec.Function); err != nil {
			return err
		}
		spec.Queue = cmp.Or(spec.Queue, layout.DefaultQueue)
		fit := members
		if spec.MustBeNear {
			if fit, err = near(ctx, c, spec.Near, members); err != nil {
				return err
			}
		}
		if f := Of(&spec, fit); f.Lack != "" && !f.Uncertain {
			return fmt.Errorf("%w: %s", layout.ErrUnfit, f.Text)
		}
	}
	return nil
}

// near returns those of some members that have the result of a future. It
// returns all of them while that has no result, or one that is not an object, and if
// none has it any more: then it is made again.
func near(ctx context.Context, c *fdbmodel.Cluster, id layout.ID, members []fdbmodel.Member,
) ([]fdbmodel.Member, error) {
	var copies []read.Copy
	err := c.View(ctx, func(tx kv.Attempt) (err error) {
		copies, err = read.Copies(ctx, tx.Snapshot(), c.Keys(), id)
		return err
	})
	if err != nil {
		return nil, err
	}
	var holders []fdbmodel.Member
	for i := range members {
		if slices.ContainsFunc(copies, func(held read.Copy) bool { return held.Alive && held.Worker == members[i].ID }) {
			holders = append(holders, members[i])
		}
	}
	if len(holders) == 0 {
		return members, nil
	}
	return holders, nil
}
