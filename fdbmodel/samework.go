package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

func errIDInUse(s *Submission, differs string) error {
	if s.Key != "" {
		return fmt.Errorf("%w: %s, by the key %.80q, with other %s: use another key, submit what was submitted before, or "+
			"discard that future once it is over, which frees the key", ErrIDInUse, s.ID, s.Key, differs)
	}
	return fmt.Errorf("%w: %s, with other %s: use another id, submit what was submitted before, or discard that future "+
		"once it is over", ErrIDInUse, s.ID, differs)
}

// answerSame answers with the existing future, and returns ErrIDInUse if that is not what s
// describes.
func (c *Cluster) answerSame(ctx context.Context, tx kv.Reader, old *layout.Row, s *Submission, answer *Submitted,
) error {
	differs, err := c.otherThan(ctx, tx, old, s)
	if err != nil {
		return err
	}
	if differs != "" {
		return errIDInUse(s, differs)
	}
	answer.Existed, answer.State, answer.place = s.chosen, old.State(), layout.PlaceOf(old)
	answer.Differs = otherSettings(old, s, layout.Millis(c.clock.Now()))
	return nil
}

// otherThan returns what the existing future has that s has not, empty if s
// describes it.
func (c *Cluster) otherThan(ctx context.Context, tx kv.Reader, old *layout.Row, s *Submission) (string, error) {
	differs := otherWork(old.Spec, &s.Spec)
	if differs != "" || !old.Spec.ArgsKey {
		return differs, nil
	}
	args, err := tx.Get(c.keys.Args(old.ID)).Wait(ctx)
	if !bytes.Equal(args, s.Args) {
		differs = differentArguments
	}
	return differs, err
}

const differentArguments = "arguments"

// otherWork returns which of the fields that determine the result differ, empty if
// none does. Large arguments are compared by their hash, which their reference holds.
func otherWork(a, b *layout.Spec) string {
	switch {
	case a.Function != b.Function:
		return "function"
	case a.Codec != b.Codec:
		return "codec"
	case a.Queue != b.Queue:
		return "queue"
	case a.ArgsSize != b.ArgsSize, !bytes.Equal(a.Args, b.Args), a.ArgsKey != b.ArgsKey, !sameRef(a.ArgsRef, b.ArgsRef):
		return differentArguments
	case !bytes.Equal(a.Inputs, b.Inputs), !sameRef(a.InputsRef, b.InputsRef):
		return "inputs"
	case a.Lane != b.Lane:
		return "lane"
	case !slices.Equal(a.Argv, b.Argv):
		return "argv"
	case !maps.Equal(a.Env, b.Env):
		return "environment"
	default:
		return ""
	}
}

// otherSettings names the fields that do not determine the result, of a future that exists,
// which are not what s asks for; empty for none. What the first submit said of them counts.
func otherSettings(old *layout.Row, s *Submission, now int64) string {
	a, b := old.Spec, &s.Spec
	var names []string
	for _, field := range []struct {
		name string
		same bool
	}{
		{"priority", a.Priority == b.Priority},
		{"delay", sameDelay(old, s, now)},
		{"retries", a.MaxRetries == b.MaxRetries},
		{"backoff", a.Backoff == b.Backoff},
		{"timeout", a.Timeout == b.Timeout},
		{"expiry", sameTime(a.ExpiresAt, b.ExpiresAt, a, b)},
		{"deadline", sameTime(a.Deadline, b.Deadline, a, b)},
		{"requirements", sameRequirements(&a.Requirements, &b.Requirements)},
		{"memory growth", a.Growth == b.Growth || a.Growth != nil && b.Growth != nil && *a.Growth == *b.Growth},
		{"label", a.Label == b.Label},
		{"tags", slices.Equal(a.Tags, b.Tags)},
		{"place of the result", a.AsObject == b.AsObject && a.AllowReconstruction == b.AllowReconstruction},
		{"nearness", a.Near == b.Near && a.MustBeNear == b.MustBeNear},
	} {
		if !field.same {
			names = append(names, field.name)
		}
	}
	return strings.Join(names, ", ")
}

func sameRequirements(a, b *layout.Requirements) bool {
	return a.CPU == b.CPU && a.RAM == b.RAM && a.GPU == b.GPU && maps.Equal(a.Labels, b.Labels)
}

// sameTolerance is by how many milliseconds times may differ that were asked for as
// a duration from the submit.
const sameTolerance = 1000

// sameTime reports whether two limits are the same time, or as long after their submits.
func sameTime(a, b int64, first, repeated *layout.Spec) bool {
	if a == b {
		return true
	}
	longer := (a - first.SubmittedAt) - (b - repeated.SubmittedAt)
	return a != 0 && b != 0 && -sameTolerance <= longer && longer <= sameTolerance
}

// sameDelay reports whether a future may have the delay that s asks for. Once that is over,
// the records don't tell.
func sameDelay(old *layout.Row, s *Submission, now int64) bool {
	asked, due := int64(0), int64(0)
	if !s.NotBefore.IsZero() {
		asked = layout.Millis(s.NotBefore)
	}
	untried := old.Attempts.Failed+old.Attempts.Crashes+old.Attempts.PutBack == 0
	if old.State() == layout.Delayed && untried {
		due = old.Attempts.Due
		return asked > now && sameTime(due, asked, old.Spec, &s.Spec)
	}
	// It would still wait, both if it were until that time, and if it were as long.
	return asked-s.Spec.SubmittedAt+old.Spec.SubmittedAt <= now+sameTolerance
}

func sameRef(a, b *layout.ChunkRef) bool { return a == b || a != nil && b != nil && *a == *b }
