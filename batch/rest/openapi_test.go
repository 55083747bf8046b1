package rest_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

func TestTheDescriptionIsValid(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	safe := stack.Options{Tokens: stack.NewTokens("admin", adminToken)}
	for _, o := range []rest.Options{{}, {Client: client, Stack: safe}} {
		f := newFixture(t, o)
		answer := f.send("GET", "/openapi.json", "")
		require.Equal(t, 200, answer.Status)
		document, err := openapi3.NewLoader().LoadFromData(answer.Body)
		require.NoError(t, err)
		require.Equal(t, "3.1.0", document.OpenAPI)
		require.NoError(t, document.Validate(t.Context()))
		for _, path := range []string{
			submitPath, resultPath, "/api/v1/functions/execute", "/api/v1/functions/install",
			"/api/v1/functions/requests/result", "/api/v1/health", batchesPath, batchesPath + "/{id}",
			batchesPath + "/{id}/results", batchesPath + "/{id}/events", batchesPath + "/{id}:cancel",
			batchesPath + "/{id}:retry", batchesPath + "/{id}/chunks", "/api/v1/peers",
		} {
			require.NotNil(t, document.Paths.Find(path), path)
		}
		require.Equal(t, o.Client != nil, document.Paths.Find("/api/v1/futures/{id}:cancel") != nil)
		for name, content := range map[string]string{"BatchRequest": "request.json", "ChunksBody": "result.json"} {
			var value any
			require.NoError(t, json.Unmarshal([]byte(plain(testdata(t, content))), &value))
			require.NoError(t, document.Components.Schemas[name].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()), name)
		}
	}
}

func TestTheDocsLoadNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	answer := f.send("GET", "/docs", "")
	require.Equal(t, 200, answer.Status)
	page := string(answer.Body)
	require.Empty(t, regexp.MustCompile(`(?i)<(script|img|iframe|link)|@import|url\(|src=`).FindAllString(page, -1))
	require.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'none'")
	for _, text := range []string{submitPath, "max_attempts", "function_invocation", "/api/v1/futures"} {
		require.True(t, strings.Contains(page, text), text)
	}
	require.Equal(t, 1, strings.Count(page, "</html>"))
}

func newClient(t *testing.T) *futures.Client {
	t.Helper()
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close(context.Background()))
		require.NoError(t, db.Close())
	})
	return client
}
