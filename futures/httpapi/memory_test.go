package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// TestAnswersTakeMemoryBeforeTheyAreRead has room for a small request alone: whatever may hold more in memory asks
// for it, and is refused before it reads.
func TestAnswersTakeMemoryBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	const room = 256 << 10
	f := newFixture(t, httpapi.Options{Stack: stack.Options{Limits: stack.Limits{Memory: room, ClientMemory: room}}})
	f.work()
	args := []byte(strings.Repeat("x", room+1))
	large, err := f.client.Submit(t.Context(), futures.Task{Function: "go:echo", Args: args})
	require.NoError(t, err)
	_, err = large.Await(t.Context())
	require.NoError(t, err)
	at := path + "/" + large.ID().String()
	require.Equal(t, http.StatusOK, f.send("GET", at, "").Status)
	for _, read := range []string{
		at + "/arguments", at + "/result", at + "/graph",
		path, path + ":count?by=queue", "/api/v1/overview",
		jobs + "/q/consumers/c/parked?limit=1000", jobs + "/q/log?limit=1000", jobs + "?limit=1000",
		"/api/v1/schedules?limit=1000", "/api/v1/lanes/mail/keys?limit=1000",
		actors + "/cart?limit=1000", actors + "/cart/1", actors + "/cart/1/parts",
	} {
		f.send("GET", read, "").Problem(http.StatusTooManyRequests, "busy", "as many bytes as allowed")
	}
	f.send("POST", jobs+"/q/consumers/c/parked:drop", `{"all":true}`).
		Problem(http.StatusTooManyRequests, "busy", "as many bytes as allowed")
	for change, body := range map[string]string{
		":cancel?queue=default": "", ":fork?queue=default": "", ":put": "value",
	} {
		f.send("POST", path+change, body).Problem(http.StatusTooManyRequests, "busy", "as many bytes as allowed")
	}
}
