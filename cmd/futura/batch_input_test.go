package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
)

func TestFilesOfArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		named, file, content, format string
		want                         [][]string
	}{
		{"", "a.csv", "a,b\n\"c d\"\n", formatCSV, [][]string{{"a", "b"}, {"c d"}}},
		{"", "a.NDJSON", "[\"a\",\"b\"]\n\n\"c d\"\n[]\n", formatNDJSON, [][]string{{"a", "b"}, {"c d"}, {}}},
		{"", "-", "[\"a\"]\n", formatNDJSON, [][]string{{"a"}}},
		{"", "-", "http://a,1\n", formatCSV, [][]string{{"http://a", "1"}}},
		{"ndjson", "a.csv", "\"a\"", formatNDJSON, [][]string{{"a"}}},
	} {
		format, err := formatOf(c.named, c.file, []byte(c.content))
		require.NoError(t, err)
		require.Equal(t, c.format, format, c.content)
		got, err := readArguments(format, []byte(c.content))
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	format, err := formatOf("", "-", []byte(` {"template":{}}`))
	require.NoError(t, err)
	require.Equal(t, formatJSON, format)
	_, err = formatOf("xml", "a", nil)
	require.ErrorAs(t, err, &usageError{})
	long := `"` + strings.Repeat("x", maxArgumentLine) + `"`
	for _, wrong := range []string{"7", `["a",1]`, `{"a":1}`, `[["a"]]`, long} {
		_, err := readArguments(formatNDJSON, []byte(wrong))
		require.ErrorAs(t, err, &usageError{})
	}
	for _, format := range []string{formatCSV, formatNDJSON} {
		_, err := readArguments(format, []byte("\"caf\xe9\"\n"))
		require.ErrorContains(t, err, "not UTF-8")
		require.ErrorAs(t, err, &usageError{})
	}
	_, err = readArguments(formatCSV, []byte(`"a`))
	require.ErrorAs(t, err, &usageError{})
}

// TestAByteOrderMarkIsNoArgument also where the format is seen by the content.
func TestAByteOrderMarkIsNoArgument(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"a,b\r\nc,d\r\n", "[\"a\",\"b\"]\n[\"c\",\"d\"]\n"} {
		a := &app{in: strings.NewReader("\ufeff" + content)}
		body, err := (&batchFlags{file: "-", function: "f"}).body(a, nil)
		require.NoError(t, err)
		require.Contains(t, string(body), `[["a","b"],["c","d"]]`)
	}
	whole := `{"template":{"function_id":"f"},"arguments":[["a"]]}`
	body, err := (&batchFlags{file: "-"}).body(&app{in: strings.NewReader("\ufeff" + whole)}, nil)
	require.NoError(t, err)
	require.Equal(t, whole, string(body))
}

// TestARateIsANumber: the flag takes those that JSON has no place for.
func TestARateIsANumber(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := (&batchFlags{function: "f", config: batch.Config{RatePerHost: rate}}).body(&app{}, []string{"a"})
		require.ErrorContains(t, err, "rate_per_host")
		require.ErrorAs(t, err, &usageError{})
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(true, []byte("a,\"b\nc\"\n"))
	f.Add(false, []byte("[\"a\"]\n\"b\"\nnull\n"))
	f.Fuzz(func(t *testing.T, asCSV bool, content []byte) {
		format := formatNDJSON
		if asCSV {
			format = formatCSV
		}
		lists, err := readArguments(format, content)
		if err != nil {
			require.ErrorAs(t, err, &usageError{})
			return
		}
		_, err = json.Marshal(lists)
		require.NoError(t, err)
	})
}

// FuzzFormats reads a file whose format is not named.
func FuzzFormats(f *testing.F) {
	f.Add("a.csv", []byte("a,b"))
	f.Add("-", []byte(` {"template":{}}`))
	f.Add("x.JSONL", []byte(`["a"]`))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		format, err := formatOf("", name, content)
		require.NoError(t, err)
		require.Contains(t, []string{formatJSON, formatCSV, formatNDJSON}, format)
	})
}

// FuzzItems reads what a head may send as items.
func FuzzItems(f *testing.F) {
	f.Add([]byte(`{"index":1,"state":"done","arguments":["a"],"result":{"stdout":"x","exit_code":0}}` + "\n{\"index\":2}"))
	f.Add([]byte("[]\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var out bytes.Buffer
		err := (&app{out: &out}).writeItems(bytes.NewReader(content))
		require.True(t, err == nil || errors.Is(err, errCutOff) && !errors.Is(err, io.EOF), "%v", err)
		require.Equal(t, bytes.Count(out.Bytes(), []byte("\n")), bytes.Count(out.Bytes(), []byte("\t"))/4)
	})
}

// TestPipedItemsAreWhole has results of many lines and bytes printed where no terminal is.
func TestPipedItemsAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é\n\t\\", 1000)
	item, err := json.Marshal(map[string]any{
		"index": 7, "state": "done", "arguments": []string{"a", "b\tc"}, "result": map[string]any{"stdout": long},
	})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, (&app{out: &out}).writeItems(bytes.NewReader(item)))
	require.Equal(t, "7\tdone\t0\ta b\\tc\t"+strings.Repeat(`é\n\t\\`, 1000)+"\n", out.String())
}

// TestStagesOfBatches: the list says what the items show, of which the record of their batch comes later.
func TestStagesOfBatches(t *testing.T) {
	t.Parallel()
	var list rest.BatchList
	require.NoError(t, json.Unmarshal([]byte(`{"batches":[
		{"id":"a","status":0,"state":"created","items":3000,"progress":{"created":3000}},
		{"id":"b","status":0,"state":"created","items":3000,"progress":{"created":2973,"done":27}},
		{"id":"c","status":1,"state":"running","items":3,"progress":{"done":2,"permanently_failed":1}},
		{"id":"d","status":100,"state":"done","items":3,"progress":{"done":3}}]}`), &list))
	rows := listRows(&list)
	var stages []string
	for _, row := range rows[1:] {
		stages = append(stages, strings.Join(row[1:5], " "))
	}
	require.Equal(t, []string{"created 0 0 3000", "running 27 0 3000", "finishing 2 1 3", "done 3 0 3"}, stages)
}

// FuzzEvents reads what a head may send to watch.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: progress\ndata: {\"id\":\"b\",\"status\":1,\"progress\":{\"done\":1}}\n\n" +
		"data: {\"status\":100}\n\n"))
	f.Add([]byte(": comment\r\ndata: null\n\ndata: [\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		shown := 0
		err := readEvents(bytes.NewReader(content), func(v *batchView) error {
			shown++
			_, err := json.Marshal(v)
			require.NoError(t, err)
			require.NotEmpty(t, v.rows())
			return nil
		})
		require.True(t, err == nil || errors.Is(err, errCutOff) || errors.Is(err, errNoHead), "%v", err)
		require.LessOrEqual(t, shown, bytes.Count(content, []byte("data: ")))
	})
}

// TestAWholeRequestTakesNoFlags that would say what it says.
func TestAWholeRequestTakesNoFlags(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, flag := range []string{"topic", "nodes", "max-attempts", "timeout", "concurrency", "rate-per-host", "env"} {
		value := "1"
		if flag == "env" {
			value = "A=B"
		}
		_, errOut := s.run(exitUsage, `{"arguments":[["a"]]}`, "batch", "submit", "--file", "-", "--"+flag, value)
		require.Contains(t, errOut, "leave out --"+flag)
	}
}

// TestResultsByChunkAreWhole: what chooses among items is refused beside --json.
func TestResultsByChunkAreWhole(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, flag := range []string{"--state=done", "--ndjson"} {
		_, errOut := s.run(exitUsage, "", "batch", "result", "01995b4e-6f3a-7c1e-9d2b-0123456789ab", "--json", flag)
		require.Contains(t, errOut, "exclude each other")
	}
}
