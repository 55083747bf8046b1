package batch_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func TestItemIDIsThatOfB7s(t *testing.T) {
	t.Parallel()
	echo := &batch.Template{
		FunctionID: "bafybeie3nlygbnuxhvqv3gvwa2hmd4tcfzk5jtvscwl6qs3ljn5tknlt4q", Method: "echo.wasm",
	}
	require.Equal(t, "268a4145a50ade48aed2b1147d3518c6",
		batch.ItemID(echo, []string{"https://example.com/dir1/dir2/resource/some-random-slug-1"}))
	mine := &batch.Template{FunctionID: "myfunc", Method: "echo.wasm"}
	require.Equal(t, "1138b0725982d052a0c247eeb46ac1e4", batch.ItemID(mine, nil))
	require.Equal(t, batch.ItemID(mine, []string{"a b"}), batch.ItemID(mine, []string{"a", "b"}))
	require.NotEqual(t, batch.ItemID(mine, []string{"a"}), batch.ItemID(mine, []string{"a", ""}))
}

func TestTheLowerLimitOfAttemptsCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user, operator uint64
		want           int
	}{
		{0, 0, 10}, {1, 0, 1}, {2, 0, 2}, {10, 0, 10}, {11, 0, 10}, {math.MaxUint64, 0, 10}, {0, 3, 3}, {2, 3, 2},
		{5, 3, 3}, {math.MaxUint64, math.MaxUint64, math.MaxInt32},
	} {
		require.Equal(t, c.want, batch.Attempts(c.user, c.operator), "%d %d", c.user, c.operator)
	}
}

func TestStatesHaveTheNumbersOfB7s(t *testing.T) {
	t.Parallel()
	for s, want := range map[batch.Status]struct {
		n    int
		name string
		over bool
	}{
		batch.Created: {0, "created", false}, batch.InProgress: {1, "in progress", false}, batch.Done: {100, "done", true},
		batch.Failed: {-1, "failed", false}, batch.PermanentlyFailed: {-2, "permanently failed", true},
	} {
		require.Equal(t, want.n, int(s))
		require.Equal(t, want.name, s.String())
		require.Equal(t, want.over, s.Over())
	}
	require.Len(t, batch.Statuses(), 5)
	require.Equal(t, "status(7)", batch.Status(7).String())
	p := batch.Progress{batch.Done: 2, batch.PermanentlyFailed: 1}
	require.True(t, p.Over(3))
	require.False(t, p.Over(4))
	b, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"created":0,"in_progress":0,"done":2,"failed":0,"permanently_failed":1}`, string(b))
}

func TestEnvironmentsAreBounded(t *testing.T) {
	t.Parallel()
	template := batch.Template{FunctionID: "f"}
	template.Config.Environment = []batch.EnvVar{{Name: "A", Value: strings.Repeat("x", batch.MaxItem-11)}}
	require.NoError(t, batch.Validate(&template, [][]string{nil, {"12345", "67890"}}))
	err := batch.Validate(&template, [][]string{nil, {"12345", "678901"}})
	require.ErrorIs(t, err, batch.ErrBadBatch)
	require.ErrorContains(t, err, "arguments[1] and env_vars have 32001 bytes together: at most 32000")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := batch.Template{FunctionID: "f", Method: "m"}
	require.NoError(t, batch.Validate(&good, [][]string{nil, {"a"}}))
	for says, change := range map[string]func(*batch.Template, *[][]string){
		"function_id":     func(t *batch.Template, _ *[][]string) { t.FunctionID = "" },
		"empty":           func(_ *batch.Template, a *[][]string) { *a = nil },
		"1000000":         func(_ *batch.Template, a *[][]string) { *a = make([][]string, batch.MaxItems+1) },
		"number_of_nodes": func(t *batch.Template, _ *[][]string) { t.Config.Nodes = -2 },
		"at most 1000000": func(t *batch.Template, _ *[][]string) { t.Config.Nodes = math.MaxInt },
		"concurrency":     func(t *batch.Template, _ *[][]string) { t.Config.Concurrency = math.MaxInt },
		"is NaN":          func(t *batch.Template, _ *[][]string) { t.Config.RatePerHost = math.NaN() },
		"is +Inf":         func(t *batch.Template, _ *[][]string) { t.Config.RatePerHost = math.Inf(1) },
		"4294967296":      func(t *batch.Template, _ *[][]string) { t.Config.Timeout = math.MaxInt },
		"run_time 9":      func(t *batch.Template, _ *[][]string) { t.Config.RunTime = math.MaxInt64 },
		"negative":        func(t *batch.Template, _ *[][]string) { t.Config.Timeout = -1 },
		"arguments[1]": func(_ *batch.Template, a *[][]string) {
			(*a)[1] = []string{strings.Repeat("x", batch.MaxArguments), "y"}
		},
	} {
		template, arguments := good, [][]string{{"a"}, {"b"}}
		change(&template, &arguments)
		err := batch.Validate(&template, arguments)
		require.ErrorIs(t, err, batch.ErrBadBatch)
		require.ErrorContains(t, err, says)
	}
}

func TestModulesTakeNoZeroBytes(t *testing.T) {
	t.Parallel()
	r := batch.Request{
		Template: batch.Template{FunctionID: "f", Method: "m"}, Arguments: [][]string{{"a"}, {"b", "c\x00"}},
	}
	require.ErrorIs(t, r.Validate(), batch.ErrBadBatch)
	require.ErrorContains(t, r.Validate(), "arguments[1][1]")
	r.Template.FunctionID = "go:f"
	require.NoError(t, r.Validate())
}
