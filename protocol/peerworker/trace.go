package peerworker

import (
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// setTrace has a future continue the trace of its item, unless the future has no room for
// the context.
func setTrace(spec *layout.Spec, carrier protocol.Carrier) {
	if len(carrier) == 0 {
		return
	}
	if spec.Trace = carrier; spec.MetaSize() > layout.MaxMeta {
		spec.Trace = nil
	}
}
