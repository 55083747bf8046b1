package futures

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/jsonpointer"
)

// TaskStatus is what has become of a task: a future that runs with others of its lane.
type TaskStatus string

// The states of a task. There is no state between created and in progress: the
// transaction that takes a task into a bundle hands it to the call. One that is tried
// again is created until then.
const (
	TaskCreated    TaskStatus = "created"
	TaskInProgress TaskStatus = "in-progress"
	TaskSucceeded  TaskStatus = "succeeded"
	TaskFailed     TaskStatus = "failed"
)

// TaskStatusOf returns the status of a task whose future has a state.
func TaskStatusOf(s State) TaskStatus {
	switch s {
	case Claimed:
		return TaskInProgress
	case Realized:
		return TaskSucceeded
	case Failed:
		return TaskFailed
	default:
		return TaskCreated
	}
}

// Task returns the task of a handler, a kind of lanes whose futures run together, for
// callers without its Go code: of a JSON input, in the lane that the input says by the Target of
// the kind. An empty target is that one. For a kind without Target it is required; for
// others it must be the one of the input. It returns ErrBadSpec.
func (k *LaneKind) Task(input []byte, target string) (Task, error) {
	if k.Bundle == "" {
		return Task{}, fmt.Errorf("%w: the futures of lanes %s do not run together, so it is no handler", layout.ErrBadSpec,
			k.Name)
	}
	switch {
	case k.Target != "":
		found, err := jsonpointer.Text(input, k.Target)
		if err != nil {
			return Task{}, fmt.Errorf("target of a task of %s: %w: %w", k.Name, layout.ErrBadSpec, err)
		}
		if target != "" && target != found {
			return Task{}, fmt.Errorf("%w: task of %s: the target is %.80q, but the input has %.80q at %s", layout.ErrBadSpec,
				k.Name, target, found, k.Target)
		}
		target = found
	case target == "":
		return Task{}, fmt.Errorf("%w: handler %s does not say where an input has its target: name the target, or set it "+
			"once with futura lane set %s --target /FIELD", layout.ErrBadSpec, k.Name, k.Name)
	}
	t := Task{Function: k.Bundle, Codec: CodecJSON, Args: input, Lane: Lane{Kind: k.Name, Key: target}}
	return t, t.Lane.Check()
}
