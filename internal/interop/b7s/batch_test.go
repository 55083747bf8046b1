//go:build linux

package b7s

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// installLimit is for a head to find its workers and for these to install.
	installLimit = 20 * time.Second
	// answerLimit is for a head to answer a request.
	answerLimit = 2 * time.Minute
)

// item is what a worker returned for an item of a batch.
type item struct {
	Code   string
	Result struct {
		Stdout, Stderr string
		ExitCode       int `json:"exit_code"`
	}
	Arguments []string
}

// chunk is what a worker returned.
type chunk struct {
	Peer    string
	Results map[string]item
}

// reply is a head's to a batch.
type reply struct {
	Code    string
	Chunks  map[string]chunk
	Strands map[string]chunk
}

// post sends a request to a head and returns the body of its answer.
func (n *node) post(t *testing.T, path string, request any) []byte {
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	client := http.Client{Timeout: answerLimit}
	response, err := client.Post(n.rest+path, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(answer))
	return answer
}

// install has a head of b7s install a function until all peers have it. The
// head does not know when they listen to it, so it is asked again. has returns
// false when its context ends before the peer has the function.
func (n *node) install(t *testing.T, f function, has ...func(context.Context) bool) {
	t.Helper()
	const again = 300 * time.Millisecond
	for limit := time.Now().Add(installLimit); time.Now().Before(limit); {
		n.post(t, "/api/v1/functions/install", map[string]string{"uri": f.manifest, "cid": "any"})
		ctx, cancel := context.WithTimeout(t.Context(), again)
		ready := 0
		for _, ok := range has {
			if ok(ctx) {
				ready++
			}
		}
		cancel()
		if ready == len(has) {
			return
		}
	}
	require.FailNow(t, "the workers did not install the function", "within %s", installLimit)
}

// installed waits until a worker of b7s has installed a function.
func (n *node) installed(ctx context.Context) bool {
	_, ok := n.output.await(ctx, n.ended, "installed function")
	return ok
}

// told waits until a peer has told a head of b7s that it has a function.
func (n *node) told(peer string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		_, ok := n.output.await(ctx, n.ended, "function install response received", peer)
		return ok
	}
}

// execute has a head execute a batch, and returns its chunks.
func (n *node) execute(t *testing.T, f function, workers int, arguments [][]string) map[string]chunk {
	t.Helper()
	answer := n.post(t, "/api/v1/functions/execute/batch", map[string]any{
		"template": map[string]any{
			"function_id": f.id, "method": method, "config": map[string]any{"number_of_nodes": workers},
		},
		"arguments": arguments, "max_attempts": 2,
	})
	var r reply
	require.NoError(t, json.Unmarshal(answer, &r))
	code := "200"
	if n.own && slices.ContainsFunc(arguments, func(args []string) bool { return slices.Contains(args, "fail") }) {
		code = "206"
	}
	require.Equal(t, code, r.Code)
	if n.dialect.container == "strands" {
		return r.Strands
	}
	return r.Chunks
}

// checkChunks compares a batch's results with its items: each is there once,
// under its id, with its output.
func checkChunks(t *testing.T, f function, chunks map[string]chunk, workers []string, arguments [][]string) {
	t.Helper()
	peers := map[string]bool{} // a head of the project gives items that failed again, as another chunk
	found := map[string]item{}
	for id, c := range chunks {
		peers[c.Peer] = true
		for key, result := range c.Results {
			require.NotContains(t, found, key, "chunk %s has an item of another", id)
			found[key] = result
		}
	}
	require.ElementsMatch(t, workers, slices.Collect(maps.Keys(peers)))
	require.Len(t, found, len(arguments))
	for _, args := range arguments {
		id := f.itemID(args)
		require.Contains(t, found, id, "of %q", args)
		result := found[id]
		wanted, code := 0, "200"
		if slices.Contains(args, "fail") {
			wanted, code = 3, "500"
		}
		require.Equal(t, code, result.Code, "of %q: %+v", args, result)
		require.Equal(t, wanted, result.Result.ExitCode)
		require.Equal(t, args[0], result.Result.Stdout)
		require.Equal(t, args, result.Arguments)
	}
}

// echoes is the arguments of items that print a text of their own.
func echoes(count int) [][]string {
	list := make([][]string, count)
	for i := range list {
		list[i] = []string{fmt.Sprintf("https://example.com/slug-%d", i)}
	}
	return list
}
