package peerworker

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// maxInline is the largest value that is in a message; larger ones are blobs.
const maxInline = 1 << 20

// failure describes a failed attempt.
func failure(index int, f *layout.Exception) *protocol.Outcome {
	o := &protocol.Outcome{
		Index: index, Code: protocol.CodeError, Kind: string(f.Kind), Message: f.Message, ExitCode: f.ExitCode,
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
