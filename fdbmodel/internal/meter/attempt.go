package meter

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Attempt is one that ended with a result, or failed with an exception.
type Attempt struct {
	Spec      *layout.Spec // nil if it is unknown
	Inline    []byte       // its arguments, if they are in the spec
	RunTime   time.Duration
	Result    *layout.Result
	Exception *layout.Exception
}

// Used is what an attempt has used. The call of a bundle is no item of its own.
func (a *Attempt) Used() Metered {
	m := Metered{RunTime: max(a.RunTime, 0)}
	usage := (*layout.Usage)(nil)
	if v := a.Result; v != nil {
		m.Items, m.Out, usage = 1, v.Size, v.Usage
		m.Out += streamSize(v.Stderr, v.StderrRef)
	} else {
		e := a.Exception
		m.Failed, m.Out, usage = 1, int64(len(e.Stdout)), e.Usage
		m.Out += streamSize(e.Stderr, e.StderrRef)
	}
	if usage != nil {
		m.CPU, m.Memory = max(usage.CPUUser+usage.CPUSys, 0), max(usage.Memory, 0)
	}
	m.In = a.argsSize()
	if a.Spec != nil && a.Spec.Bundle {
		m.Items, m.Failed, m.In, m.Out = 0, 0, 0, 0
	}
	return m
}

// argsSize is how many bytes of arguments the future has, those of its argv included.
func (a *Attempt) argsSize() int64 {
	n := int64(len(a.Inline))
	if a.Spec == nil {
		return n
	}
	if a.Spec.ArgsRef != nil {
		n = a.Spec.ArgsRef.Size
	}
	for _, arg := range a.Spec.Argv {
		n += int64(len(arg))
	}
	return n
}

func streamSize(inline []byte, ref *layout.ChunkRef) int64 {
	if ref != nil {
		return ref.Size
	}
	return int64(len(inline))
}
