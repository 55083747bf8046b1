package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
)

type shownResult struct {
	Code   string
	Result struct {
		Stdout, Stderr string
		StdoutBase64   string `json:"stdout_base64"`
		StderrBase64   string `json:"stderr_base64"`
	}
	Usage map[string]int64
}

// shown returns the results of a batch by their standard output as b7s has it.
func (f *fixture) shown(id string) map[string]shownResult {
	f.Helper()
	var answer struct {
		Chunks map[string]struct{ Results map[string]shownResult }
	}
	f.send("POST", resultPath, `{"id":"`+id+`"}`).Into(200, &answer)
	shown := map[string]shownResult{}
	for _, c := range answer.Chunks {
		for _, r := range c.Results {
			shown[r.Result.Stdout] = r
		}
	}
	return shown
}

// TestBinaryOutputSurvives has items write what is not UTF-8, on either stream and
// across the pieces in which output is written.
func TestBinaryOutputSurvives(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	long := strings.Repeat("x", 1<<16) + "\xff\x00\xfe" + strings.Repeat("\"y*", 1<<16)
	id := f.submit("a", "b", "c")
	f.complete(id, f.assign(id, "w", 0, 1, 2), map[int]batch.Result{
		0: {Stdout: long, Stderr: "\x80"}, 1: {Stdout: "text", Stderr: "\xc3"}, 2: {Stdout: `"stdout_base64":"*"`},
	})
	shown := f.shown(id)
	require.Len(t, shown, 3)
	whole := func(encoded string) string {
		t.Helper()
		text, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		return string(text)
	}
	var binary shownResult
	for text, r := range shown {
		if strings.HasPrefix(text, "xxx") {
			require.Contains(t, text, "x\ufffd\x00\ufffd\"")
			binary = r
		}
	}
	require.True(t, long == whole(binary.Result.StdoutBase64))
	require.Equal(t, "\x80", whole(binary.Result.StderrBase64))
	require.Equal(t, "\ufffd", binary.Result.Stderr)
	require.Empty(t, shown["text"].Result.StdoutBase64)
	require.Equal(t, "\xc3", whole(shown["text"].Result.StderrBase64))
	require.Empty(t, shown[`"stdout_base64":"*"`].Result.StdoutBase64)
}

// TestItemsTellTheirCodeAndUsage ends one item well and one badly, with a usage that
// is known, and one that is not.
func TestItemsTellTheirCodeAndUsage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	id := f.submit("a", "b")
	used := batch.Usage{WallClock: 2 * time.Second, CPUUser: 3, CPUSys: 4, MemoryMaxKB: 5}
	f.complete(id, f.assign(id, "w", 0, 1), map[int]batch.Result{
		0: {Stdout: "good", Usage: used}, 1: {Stdout: "bad", ExitCode: 1},
	})
	shown := f.shown(id)
	require.Equal(t, "200", shown["good"].Code)
	require.Equal(t, map[string]int64{
		"wall_clock_time": 2e9, "cpu_user_time": 3, "cpu_sys_time": 4, "memory_max_kb": 5,
	}, shown["good"].Usage)
	require.Equal(t, "500", shown["bad"].Code)
	require.Equal(t, map[string]int64{}, shown["bad"].Usage)
	var page struct {
		Items []struct{ Result json.RawMessage }
	}
	f.send("GET", batchesPath+"/"+id+"/results", "").Into(200, &page)
	require.Contains(t, string(page.Items[0].Result), `"memory_max_kb":5`)
}
