package rest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

const adminToken = "0123456789-admin"

// TestEveryRouteAsksForItsPermission asks each route as each role.
func TestEveryRouteAsksForItsPermission(t *testing.T) {
	t.Parallel()
	tokens := stack.NewTokens("admin", adminToken)
	secrets := map[stack.Permission]string{stack.Public: "", stack.Admin: adminToken}
	for _, role := range []stack.Permission{stack.Read, stack.Submit} {
		secrets[role] = role.String() + "-0123456789"
		tokens.AddRole(role.String(), secrets[role], role)
	}
	client := newClient(t)
	routes := rest.New(newFakeHead(), rest.Options{Client: client}).Routes()
	f := newFixture(t, rest.Options{Tokens: tokens, Client: client})
	const batchID = "cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10"
	declared := map[string]stack.Permission{}
	for _, rt := range append(routes, stack.RouteInfo{Method: "GET", Path: "/nothing", Permission: stack.Read}) {
		declared[rt.Method+" "+rt.Path] = rt.Permission
		path := strings.Replace(rt.Path, "{id}", batchID, 1)
		for _, role := range stack.Permissions() {
			answer := f.send(rt.Method, path, "", "Authorization", "Bearer "+secrets[role])
			switch {
			case role >= rt.Permission:
				require.NotContains(t, []int{401, 403}, answer.status, "%s %s %s", rt.Method, path, role)
			case role == stack.Public:
				answer.problem(401, "unauthorized", rt.Permission.String())
				require.Contains(t, answer.header.Get("WWW-Authenticate"), "Bearer")
				f.send(rt.Method, path, "", "Authorization", "Bearer wrong").problem(401, "unauthorized", "")
			default:
				answer.problem(403, "forbidden", rt.Permission.String())
			}
		}
	}
	// What may never be less, whatever the routes say of themselves.
	for route, least := range map[string]stack.Permission{
		"GET /api/v1/health": stack.Public, "GET /openapi.json": stack.Public, "GET /docs": stack.Public,
		"GET /": stack.Public, "GET /metrics": stack.Read,
		"GET " + batchesPath: stack.Read, "GET " + batchesPath + "/{id}": stack.Read, "POST " + resultPath: stack.Read,
		"GET " + batchesPath + "/{id}/results": stack.Read, "GET " + batchesPath + "/{id}/events": stack.Read,
		"POST /api/v1/functions/requests/result": stack.Read, "GET /api/v1/futures": stack.Read,
		"POST " + submitPath: stack.Submit, "POST " + batchesPath + "/{id}:cancel": stack.Submit,
		"POST " + batchesPath + "/{id}:retry": stack.Submit, "POST /api/v1/futures": stack.Submit,
		"POST /api/v1/functions/execute": stack.Submit, "POST /api/v1/futures:submit": stack.Submit,
		"POST /api/v1/functions/install": stack.Admin, "DELETE " + batchesPath + "/{id}": stack.Admin,
		"POST /api/v1/functions": stack.Admin, "DELETE /api/v1/futures/{id}": stack.Admin,
	} {
		require.Equal(t, least, declared[route], route)
	}
	f.send("GET", batchesPath, "", "Authorization", "Basic "+adminToken).problem(401, "unauthorized", "Bearer")
}
