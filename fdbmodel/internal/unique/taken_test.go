package unique

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestTakenErrorSaysWhatHelps for a holder in each state that keeps its name in each way.
func TestTakenErrorSaysWhatHelps(t *testing.T) {
	t.Parallel()
	const at = "1970-01-01T00:01:00Z"
	lasts := map[string]layout.UniqueRecord{
		"end": {}, "claim": {Until: layout.UntilClaim}, "ever": {Until: layout.UntilEver}, "period": {FreeAt: 60_000},
		"claim and period": {Until: layout.UntilClaim, FreeAt: 60_000}, "past": {FreeAt: 1},
		"claim and past": {Until: layout.UntilClaim, FreeAt: 1},
	}
	const release = "futura unique release --name 42d9"
	const after = "use another key, or release it once it is over (" + release + ")"
	const once = "until it is over: await it, cancel it, or use another key"
	waits := map[string]string{
		"end":              "until it is over: await it, replace it, cancel it, or use another key",
		"claim":            "until a worker claims it: await it, replace it, cancel it, or use another key",
		"ever":             "for ever: replace it, " + after,
		"period":           "until it is over, and until " + at + " at least: replace it, " + after,
		"claim and period": "until a worker claims it, and until " + at + " at least: replace it, " + after,
	}
	waits["past"], waits["claim and past"] = waits["end"], waits["claim"]
	begun := map[string]string{
		"end": once, "past": once, "ever": "for ever: " + after,
		"period":           "until it is over, and until " + at + " at least: " + after,
		"claim and period": "until " + at + ": " + after,
	}
	const wait = "until " + at + ": wait until then, release it (" + release + "), or use another key"
	over := map[string]string{
		"ever": "for ever: release it (" + release + "), or use another key", "period": wait, "claim and period": wait,
	}
	spec, tried := &layout.Spec{Function: "go:f"}, layout.Attempts{Due: 1, Snoozed: 1}
	const ran = "it has begun"
	for about, c := range map[string]struct {
		row  *layout.Row
		says map[string]string
		why  string // why it is not replaced
		is   string
	}{
		"ready":   {&layout.Row{Spec: spec}, waits, "-", "ready"},
		"delayed": {&layout.Row{Spec: spec, Attempts: layout.Attempts{Due: 1}}, waits, "-", "delayed"},
		"blocked": {&layout.Row{Spec: spec, Blocked: &layout.BlockedRecord{}}, waits, "-", "blocked"},
		"claimed": {&layout.Row{Spec: spec, Claim: &layout.Claim{}}, begun, ran, "claimed"},
		"retried": {&layout.Row{Spec: spec, Attempts: layout.Attempts{Failed: 1}}, begun, ran, "ready"},
		"snoozes": {&layout.Row{Spec: spec, Attempts: tried}, begun, ran, "delayed"},
		"realized": {&layout.Row{Spec: spec, Claim: &layout.Claim{}, Result: &layout.Result{}},
			over, "it is over", "realized"},
		"cancelled before it began": {&layout.Row{Spec: spec,
			Exception: &layout.Exception{Kind: layout.KindCancelled, Final: true}}, over, "it is over", "failed"},
		"removed": {nil, over, "it is over", "which was removed"},
	} {
		for last, record := range lasts {
			h := Holder{ID: layout.ID{1}, Record: record, Row: c.row}
			require.Equal(t, c.says[last] != "", h.Holds(1000), "%s, %s", about, last)
			if c.says[last] == "" {
				continue
			}
			text := fmt.Sprintf("not unique: future %s (%s) has the same work: ", h.ID, c.is)
			require.EqualError(t, h.Refusal("42d9", ConflictRefuse, 1000), text+"it keeps it "+c.says[last], about)
			if c.why != "-" {
				require.EqualError(t, h.Refusal("42d9", ConflictReplace, 1000),
					text+c.why+" and is not replaced; it keeps it "+c.says[last], about)
			}
		}
	}
}
