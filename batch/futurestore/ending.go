package futurestore

import (
	"cmp"
	"net/http"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// ResultOf is what the attempt behind an ending left behind, as b7s has it. An
// attempt that failed without an exit code has batch.NoExitCode, and one without
// standard error has its message there. The ending is whole and has a result or a
// failure.
func ResultOf(e *layout.Ending) batch.Result {
	if r := e.Result; r != nil {
		return batch.Result{
			Stdout: string(r.Value), Stderr: string(r.Stderr), ExitCode: r.ExitCode, Usage: usageOf(r.RunTime, r.Usage),
		}
	}
	f, ran := e.Failure, time.Duration(0)
	if f.StartedAt != 0 {
		ran = time.Duration(max(f.At-f.StartedAt, 0)) * time.Millisecond
	}
	return batch.Result{
		Stdout: string(f.Stdout), Stderr: cmp.Or(string(f.Stderr), f.Message), ExitCode: cmp.Or(f.ExitCode, batch.NoExitCode),
		Usage: usageOf(ran, f.Usage),
	}
}

func usageOf(ran time.Duration, u *layout.Usage) batch.Usage {
	used := batch.Usage{WallClock: ran}
	if u != nil {
		used.CPUUser, used.CPUSys, used.MemoryMaxKB = u.CPUUser, u.CPUSys, (u.Memory+1023)/1024
	}
	return used
}

// ReasonOf says why an attempt failed.
func ReasonOf(f *layout.Exception) string {
	if f.Kind == layout.KindCancelled || f.Kind == layout.KindExit {
		return f.Message
	}
	return string(f.Kind) + ": " + f.Message
}

// CodeOf is b7s's code of what a single run came to.
func CodeOf(e *layout.Ending) int {
	switch {
	case !e.Over():
		return http.StatusAccepted
	case e.Result != nil:
		return http.StatusOK
	case e.Cancelled():
		return http.StatusGone
	case e.Failure.Kind == layout.KindTimeout:
		return http.StatusRequestTimeout
	default:
		return http.StatusInternalServerError
	}
}

// statusOf is the state of an item by its future's.
func statusOf(row *layout.Row) batch.Status {
	switch row.State() {
	case layout.Claimed:
		return batch.InProgress
	case layout.Realized:
		return batch.Done
	case layout.Failed:
		return batch.PermanentlyFailed
	}
	switch {
	case row.Attempts.Assigned != "":
		return batch.InProgress
	case row.Attempts.Failed > 0:
		return batch.Failed
	default:
		return batch.Created
	}
}
