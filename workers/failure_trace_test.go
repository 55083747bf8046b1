package workers

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestFailuresAreLoggedWithTheirTrace has contexts of a tracer, and what anybody may have sent.
func TestFailuresAreLoggedWithTheirTrace(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	for parent, want := range map[string]bool{
		"00-" + id + "-b7ad6b7169203331-01": true, "": false, "00-a-b-01": false, id: false, "00-" + id + "0-b-01": false,
	} {
		spec := &layout.Spec{Function: "go:f", Trace: map[string]string{"traceparent": parent}}
		f := failureOf(&fdbmodel.Completion{Future: &fdbmodel.ClaimedFuture{Spec: spec}, Exception: &layout.Exception{}})
		lost := failureOfLost(&layout.Row{Spec: spec, Exception: &layout.Exception{}})
		for _, failure := range []Failure{f, lost} {
			require.Equal(t, parent, failure.Trace["traceparent"])
			attrs := attrsOf(&failure)
			if want {
				require.Contains(t, attrs, slog.String("trace_id", id))
				continue
			}
			for _, a := range attrs {
				require.NotEqual(t, "trace_id", a.Key, parent)
			}
		}
	}
}
