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
		tokens.Add(role.String(), secrets[role], role)
	}
	client := newClient(t)
	routes := rest.New(newFakeHead(), rest.Options{Client: client}).Routes()
	f := newFixture(t, rest.Options{Stack: stack.Options{Tokens: tokens}, Client: client})
	const batchID = "cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10"
	declared := map[string]stack.Permission{}
	for _, rt := range append(routes, stack.RouteInfo{Method: "GET", Path: "/nothing", Permission: stack.Read}) {
		declared[rt.Method+" "+rt.Path] = rt.Permission
		path := strings.Replace(rt.Path, "{id}", batchID, 1)
		for _, role := range []stack.Permission{stack.Public, stack.Read, stack.Submit, stack.Admin} {
			answer := f.send(rt.Method, path, "", "Authorization", "Bearer "+secrets[role])
			switch {
			case role >= rt.Permission:
				require.NotContains(t, []int{401, 403}, answer.Status, "%s %s %s", rt.Method, path, role)
			case role == stack.Public:
				answer.Problem(401, "unauthorized", rt.Permission.String())
				require.Contains(t, answer.Header.Get("WWW-Authenticate"), "Bearer")
				f.send(rt.Method, path, "", "Authorization", "Bearer wrong").Problem(401, "unauthorized", "")
			default:
				answer.Problem(403, "forbidden", rt.Permission.String())
			}
		}
	}
	// What each needs, whatever the routes say of themselves: a new route needs a
	// line here.
	least := map[string]stack.Permission{
		"GET /api/v1/health": stack.Public, "GET /openapi.json": stack.Public, "GET /docs": stack.Public,
		"GET /": stack.Public, "GET /metrics": stack.Read,
		"POST /api/v1/sessions": stack.Public, "GET /api/v1/sessions/this": stack.Read, "POST /api/v1/links": stack.Read,
		"GET /api/v1/futures/{id}/arguments": stack.Read, "POST /api/v1/futures:retry": stack.Submit,
		"POST /api/v1/futures:cancel": stack.Submit, "POST /api/v1/futures:delete": stack.Admin,
		"DELETE /api/v1/sessions/this": stack.Read,
		"GET " + batchesPath:           stack.Read, "GET " + batchesPath + "/{id}": stack.Read,
		"POST " + resultPath:                   stack.Read,
		"GET " + batchesPath + "/{id}/results": stack.Read, "GET " + batchesPath + "/{id}/events": stack.Read,
		"GET /api/v1/futures/{id}/events":        stack.Read,
		"POST /api/v1/functions/requests/result": stack.Read, "GET /api/v1/futures": stack.Read,
		"POST /api/v1/promises": stack.Submit, "POST /api/v1/futures/{id}:resolve": stack.Submit,
		"POST /api/v1/futures/{id}:reject": stack.Submit, "POST /api/v1/futures/{id}:token": stack.Submit,
		"GET /api/v1/promises/{token}": stack.Public, "POST /api/v1/promises/{token}": stack.Public,
		"POST /api/v1/promises/{token}:reject": stack.Public,
		"GET /api/v1/usage":                    stack.Read, "GET /api/v1/activity": stack.Read,
		"GET /api/v1/overview": stack.Read, "GET /api/v1/tokens": stack.Admin,
		"GET /api/v1/objects": stack.Read, "GET /api/v1/futures:count": stack.Read,
		"GET /api/v1/peers":  stack.Read,
		"POST " + submitPath: stack.Submit, "POST " + batchesPath + "/{id}:cancel": stack.Submit,
		"GET " + batchesPath + "/{id}/chunks": stack.Read,
		"POST " + batchesPath + "/{id}:retry": stack.Submit, "POST /api/v1/futures": stack.Submit,
		"POST /api/v1/functions/execute": stack.Submit, "POST /api/v1/futures:submit": stack.Submit,
		"POST /api/v1/functions/install": stack.Admin, "DELETE " + batchesPath + "/{id}": stack.Admin,
		"POST /api/v1/functions": stack.Admin, "DELETE /api/v1/futures/{id}": stack.Admin,
		"GET /openapi.yaml": stack.Public, "GET /openapi-3.0.json": stack.Public, "GET /nothing": stack.Read,
		"GET /api/v1/cluster": stack.Read, "GET /api/v1/workers": stack.Read, "GET /api/v1/functions": stack.Read,
		"GET /api/v1/futures/{id}": stack.Read, "GET /api/v1/futures/{id}/result": stack.Read,
		"GET /api/v1/futures/{id}/graph":       stack.Read,
		"GET /api/v1/futures/{id}/explanation": stack.Read, "POST /api/v1/futures/{id}:cancel": stack.Submit,
		"POST /api/v1/futures/{id}:retry": stack.Submit, "GET /api/v1/futures/{id}/steps": stack.Read,
		"POST /api/v1/futures/{id}:fork": stack.Submit, "POST /api/v1/futures:fork": stack.Submit,
		"GET /api/v1/futures/{id}/forks":       stack.Read,
		"POST /api/v1/futures/{id}:start-over": stack.Submit, "POST /api/v1/futures:put": stack.Submit,
		"POST /api/v1/futures/{id}:clone": stack.Submit, "POST /api/v1/futures/{id}:transfer": stack.Submit,
		"GET /api/v1/pauses": stack.Read, "PUT /api/v1/pauses/{what}/{name}": stack.Admin,
		"DELETE /api/v1/pauses/{what}/{name}": stack.Admin,
		"GET /api/v1/lanes":                   stack.Read, "GET /api/v1/lanes/{kind}": stack.Read,
		"GET /api/v1/lanes/{kind}/keys": stack.Read, "GET /api/v1/lanes/{kind}/keys/{key}": stack.Read,
		"PUT /api/v1/lanes/{kind}": stack.Admin, "DELETE /api/v1/lanes/{kind}": stack.Admin,
		"POST /api/v1/lanes/{kind}:pause": stack.Admin, "POST /api/v1/lanes/{kind}:resume": stack.Admin,
		"PUT /api/v1/lanes/{kind}/keys/{key}": stack.Admin,
		"GET /api/v1/actors":                  stack.Read, "GET /api/v1/actors/{type}": stack.Read,
		"GET /api/v1/actors/{type}/{key}": stack.Read, "DELETE /api/v1/actors/{type}/{key}": stack.Admin,
		"GET /api/v1/actors/{type}/{key}/parts": stack.Read, "POST /api/v1/actors/{type}/{key}/{method}": stack.Submit,
		"POST /api/v1/tasks": stack.Submit, "POST /api/v1/tasks:submit": stack.Submit,
		"GET /api/v1/tasks/{id}":        stack.Read,
		"GET /api/v1/tasks/{id}/result": stack.Read, "POST /api/v1/tasks/{id}:cancel": stack.Submit,
		"GET /api/v1/schedules": stack.Read, "GET /api/v1/schedules/{name}": stack.Read,
		"POST /api/v1/schedules/{name}:trigger": stack.Submit, "POST /api/v1/schedules": stack.Admin,
		"PUT /api/v1/schedules/{name}": stack.Admin, "DELETE /api/v1/schedules/{name}": stack.Admin,
		"POST /api/v1/schedules/{name}:pause": stack.Admin, "POST /api/v1/schedules/{name}:resume": stack.Admin,
		"GET /api/v1/jobs": stack.Read, "GET /api/v1/jobs/{queue}": stack.Read, "GET /api/v1/jobs/{queue}/log": stack.Read,
		"POST /api/v1/jobs/{queue}:append": stack.Submit, "DELETE /api/v1/jobs/{queue}": stack.Admin,
		"DELETE /api/v1/jobs/{queue}/consumers/{consumer}":            stack.Admin,
		"GET /api/v1/jobs/{queue}/consumers/{consumer}/parked":        stack.Read,
		"POST /api/v1/jobs/{queue}/consumers/{consumer}/parked:retry": stack.Submit,
		"POST /api/v1/jobs/{queue}/consumers/{consumer}/parked:drop":  stack.Admin,
		"GET /api/v1/limits": stack.Read, "PUT /api/v1/limits": stack.Admin,
		"GET /api/v1/unique": stack.Read, "DELETE /api/v1/unique": stack.Submit,
		"PUT /api/v1/futures/{id}/pins/{holder}": stack.Submit, "DELETE /api/v1/futures/{id}/pins/{holder}": stack.Submit,
	}
	for route, permission := range declared {
		require.Equal(t, least[route], permission, route)
	}
	require.Len(t, declared, len(least))
	f.send("GET", batchesPath, "", "Authorization", "Basic "+adminToken).Problem(401, "unauthorized", "Bearer")
}
