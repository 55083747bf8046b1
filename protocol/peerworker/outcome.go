package peerworker

import (
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// maxInline is the largest value that is in a message; larger ones are blobs.
const maxInline = 1 << 20

// exitCode is an exit code as messages have it: in 32 bits with a sign, of which a module has 32 without one.
func exitCode(code int) int { return int(int32(code)) }

// waitMS is a wait in a message, of at least so many milliseconds.
func waitMS(d time.Duration, least int64) int64 {
	return max(min(d, protocol.MaxTime).Milliseconds(), least)
}

// sendable replaces the outcomes of a message that can't be in any, by failures that say why: it would never leave.
func sendable(m *protocol.WorkOrderBatchResponse) {
	for i := range m.Outcomes {
		alone := *m
		alone.Outcomes = m.Outcomes[i : i+1]
		if err := protocol.DirectLimits().Check(&alone); err != nil {
			m.Outcomes[i] = *failure(m.Outcomes[i].Index, &layout.Exception{Kind: layout.KindError,
				Message: layout.Shorten(fmt.Sprintf("the outcome can't be sent to the head: %v", err), fdbmodel.MaxMessage)})
		}
	}
}

// failure describes a failed attempt.
func failure(index int, f *layout.Exception) *protocol.Outcome {
	o := &protocol.Outcome{
		Index: index, Code: protocol.CodeError, Kind: string(f.Kind), Message: f.Message, ExitCode: exitCode(f.ExitCode),
		Stdout: f.Stdout, Stderr: f.Stderr, Truncated: f.Truncated, Permanent: f.Permanent,
	}
	switch f.Kind {
	case layout.KindTimeout:
		o.Code = protocol.CodeTimeout
	case layout.KindCancelled:
		o.Code = protocol.CodeGone
	}
	ran := time.Duration(0)
	if f.StartedAt > 0 {
		ran = time.Duration(max(f.At-f.StartedAt, 0)) * time.Millisecond
	}
	o.Usage = usageOf(ran, f.Usage)
	return o
}

// usageOf is what an attempt took, as far as it is known.
func usageOf(ran time.Duration, u *layout.Usage) protocol.Usage {
	used := protocol.Usage{WallClock: ran.Nanoseconds()}
	if u != nil {
		const kib = 1 << 10
		used.CPUUser, used.CPUSystem, used.MemoryMaxKB = u.CPUUser.Nanoseconds(), u.CPUSys.Nanoseconds(), u.Memory/kib
	}
	return used
}

// returned describes an item that is given back.
func returned(index int, why string) *protocol.Outcome {
	return &protocol.Outcome{Index: index, Code: protocol.CodeUnavailable, Message: why}
}
