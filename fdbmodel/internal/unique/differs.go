package unique

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// DifferentArguments is what OtherWork returns for other arguments.
const DifferentArguments = "arguments"

// OtherWork returns which of the fields that determine the result differ, empty if
// none does. Large arguments are compared by their hash, which their reference holds.
func OtherWork(a, b *layout.Spec) string {
	switch {
	case a.Function != b.Function:
		return "function"
	case a.Codec != b.Codec:
		return "codec"
	case a.Queue != b.Queue:
		return "queue"
	case a.ArgsSize != b.ArgsSize, !bytes.Equal(a.Args, b.Args), a.ArgsKey != b.ArgsKey, !sameRef(a.ArgsRef, b.ArgsRef):
		return DifferentArguments
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

// OtherSettings names the fields that do not determine the result, of a future that exists,
// which are not what b asks for, not before a time or at once for 0; empty for none. What the first
// submit said of them counts.
func OtherSettings(old *layout.Row, b *layout.Spec, notBefore, now int64) string {
	a := old.Spec
	var names []string
	for _, field := range []struct {
		name string
		same bool
	}{
		{"priority", a.Priority == b.Priority},
		{"delay", sameDelay(old, b, notBefore, now)},
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

// sameDelay reports whether a future may have the delay that b asks for. Once that is over,
// the records don't tell.
func sameDelay(old *layout.Row, b *layout.Spec, asked, now int64) bool {
	untried := old.Attempts.Failed+old.Attempts.Crashes+old.Attempts.Rejected == 0
	if old.State() == layout.Delayed && untried {
		return asked > now && sameTime(old.Attempts.Due, asked, old.Spec, b)
	}
	// It would still wait, both if it were until that time, and if it were as long.
	return asked-b.SubmittedAt+old.Spec.SubmittedAt <= now+sameTolerance
}

func sameRef(a, b *layout.ChunkRef) bool { return a == b || a != nil && b != nil && *a == *b }
