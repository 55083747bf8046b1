package layout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	w := layout.WorkerInfo{Name: "gpu-1", Address: "[::1]:7000", Labels: map[string]string{"zone": "a", "ssd": ""}}
	require.NoError(t, w.CheckLabels())
	require.Equal(t, map[string]string{"zone": "a", "ssd": "", "worker": "gpu-1", "address": "[::1]:7000"}, w.Labels)
	for text, want := range map[string]bool{
		"": true, "zone=a": true, "ssd=,zone=a": true, "zone=b": false, "ssd=,zone=b": false, "ssd=1": false, "zone": false,
		"worker=gpu-1": true, "address=[::1]:7000,worker=gpu-1": true, "other=": false, "*=": false,
	} {
		set := w.LabelSet()
		require.Equal(t, want, set.Have(text), text)
		any := layout.WorkerInfo{Labels: map[string]string{layout.AnyLabel: ""}}
		require.NoError(t, any.CheckLabels())
		all := any.LabelSet()
		require.True(t, all.Have(text))
	}
	own := layout.WorkerInfo{Name: "für Leute, mit Leerzeichen", Labels: map[string]string{"worker": "mine"}}
	require.NoError(t, own.CheckLabels())
	require.Equal(t, map[string]string{"worker": "mine"}, own.Labels)

	labels, err := layout.ParseLabels([]string{"zone=a", "disk=ssd", "x=a=b"})
	require.ErrorIs(t, err, layout.ErrBadName)
	require.Nil(t, labels)
	labels, err = layout.ParseLabels([]string{"zone=a", "disk=ssd"})
	require.NoError(t, err)
	require.Equal(t, "disk=ssd,zone=a", layout.LabelText(labels))
	for _, bad := range []string{"zone", "=a", "zone=a,b", "zone=a b", "*=", "z*=", strings.Repeat("x", 65) + "="} {
		_, err := layout.ParseLabels([]string{bad})
		require.ErrorIs(t, err, layout.ErrBadName, bad)
	}
	_, err = layout.ParseLabels([]string{"zone=a", "zone=b"})
	require.ErrorContains(t, err, "each name once")
	many := layout.Spec{Function: "go:f", Codec: layout.CodecRaw}
	many.Requirements.Labels = map[string]string{}
	for i := range 17 {
		require.NoError(t, many.CheckLimits())
		many.Requirements.Labels[fmt.Sprint(i)] = "x"
	}
	require.ErrorIs(t, many.CheckLimits(), layout.ErrBadSpec)
	require.ErrorContains(t, many.CheckLimits(), "17 labels: at most 16")
}
