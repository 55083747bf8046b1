package rest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
)

const (
	readToken   = "0123456789-reader"
	submitToken = "0123456789-submitter"
	adminToken  = "0123456789-admin"
)

func writeTokens(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestRolesSayWhatATokenMayDo(t *testing.T) {
	t.Parallel()
	tokens, err := rest.OpenTokens(writeTokens(t,
		"# people\nread "+readToken+"\n\nsubmit\t"+submitToken+"\n"+adminToken+"\n"), nil)
	require.NoError(t, err)
	f := newFixture(t, rest.Options{Tokens: tokens})
	batchID := "cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10"
	for _, c := range []struct {
		method, path string
		role         rest.Role
	}{
		{"GET", "/api/v1/health", rest.Nobody}, {"GET", "/openapi.json", rest.Nobody}, {"GET", "/docs", rest.Nobody},
		{"GET", batchesPath, rest.Read}, {"GET", batchesPath + "/" + batchID, rest.Read}, {"POST", resultPath, rest.Read},
		{"GET", batchesPath + "/" + batchID + "/results", rest.Read}, {"GET", "/metrics", rest.Read},
		{"GET", batchesPath + "/" + batchID + "/events", rest.Read}, {"GET", "/nothing", rest.Read},
		{"POST", "/api/v1/functions/requests/result", rest.Read},
		{"POST", submitPath, rest.Submit}, {"POST", batchesPath + "/" + batchID + ":cancel", rest.Submit},
		{"POST", batchesPath + "/" + batchID + ":retry", rest.Submit}, {"POST", "/api/v1/futures", rest.Submit},
		{"POST", "/api/v1/functions/execute", rest.Submit},
		{"POST", "/api/v1/functions/install", rest.Admin}, {"DELETE", batchesPath + "/" + batchID, rest.Admin},
		{"POST", "/api/v1/functions", rest.Admin}, {"DELETE", "/api/v1/futures/" + batchID, rest.Admin},
	} {
		for _, has := range []struct {
			token string
			role  rest.Role
		}{
			{"", rest.Nobody}, {"wrong", rest.Nobody}, {readToken, rest.Read}, {submitToken, rest.Submit},
			{adminToken, rest.Admin},
		} {
			answer := f.send(c.method, c.path, "", "Authorization", "Bearer "+has.token)
			switch {
			case has.role >= c.role:
				require.NotContains(t, []int{401, 403}, answer.status, "%s %s %s", c.method, c.path, has.role)
			case has.role == rest.Nobody:
				answer.problem(401, "unauthorized", c.role.String())
				require.Contains(t, answer.header.Get("WWW-Authenticate"), "Bearer")
			default:
				answer.problem(403, "forbidden", c.role.String())
			}
		}
	}
	f.send("GET", batchesPath, "", "Authorization", "Basic "+adminToken).problem(401, "unauthorized", "Bearer")
}

func TestTokensAreReadAgain(t *testing.T) {
	t.Parallel()
	path := writeTokens(t, "read "+readToken)
	tokens, err := rest.OpenTokens(path, nil)
	require.NoError(t, err)
	require.Equal(t, rest.Read, tokens.RoleOf(readToken))
	require.NoError(t, os.WriteFile(path, []byte("submit "+readToken+"\nadmin "+adminToken), 0o600))
	require.NoError(t, tokens.Reload())
	require.Equal(t, rest.Submit, tokens.RoleOf(readToken))
	require.NoError(t, os.WriteFile(path, []byte("nonsense nonsense nonsense"), 0o600))
	require.ErrorContains(t, tokens.Reload(), "line 1")
	require.Equal(t, rest.Admin, tokens.RoleOf(adminToken))
	require.NoError(t, os.WriteFile(path, []byte("read "+adminToken), 0o600))
	require.Eventually(t, func() bool { return tokens.RoleOf(adminToken) == rest.Read }, 20*time.Second, time.Millisecond)
	require.Equal(t, rest.Nobody, tokens.RoleOf(""))
}

func TestFilesOfTokensThatAreWrong(t *testing.T) {
	t.Parallel()
	for content, says := range map[string]string{
		"": "no token", "# nothing\n": "no token", "read short": "16", "boss " + adminToken: "read, submit or admin",
		"read a " + adminToken: "3 words",
	} {
		_, err := rest.OpenTokens(writeTokens(t, content), nil)
		require.ErrorContains(t, err, says, "%q", content)
	}
	_, err := rest.OpenTokens(filepath.Join(t.TempDir(), "none"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, rest.Admin, rest.NewTokens(adminToken).RoleOf(adminToken))
}
