package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/rest"
)

// TestAllThatIsWrongIsSaidAtOnce sends requests with many mistakes.
func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	config := `{"number_of_nodes":-2,"timeout":-1,"permissions":["x"],"env_vars":[{"name":"="},{"name":""}],
		"runtime":{"debug_info":true,"run_time":-1,"limited_memory":65537,"entry":"a b"},
		"attributes":{"values":[{"name":"a b"}],"attestation_required":true},"threshold":2}`
	for path, body := range map[string]string{
		submitPath:  `{"topic":"no/queue","template":{"config":` + config + `},"arguments":[]}`,
		executePath: `{"topic":"no/queue","config":` + config + `}`,
	} {
		answer := f.send("POST", path, body)
		require.Equal(t, 400, answer.Status)
		var problem struct {
			Detail string
			Errors []struct{ Location, Message string }
		}
		require.NoError(t, json.Unmarshal(answer.Body, &problem))
		for _, text := range []string{
			"topic", "permissions", "env_vars[0]", "env_vars[1]", "runtime.debug_info", "runtime.run_time",
			"runtime.limited_memory", "attributes", "attributes.values[0]", "threshold", "function_id is missing",
			"number_of_nodes is -2", "must not be negative", `entry is "a b"`,
		} {
			require.Contains(t, problem.Detail, text, path)
		}
		require.GreaterOrEqual(t, len(problem.Errors), 11)
	}
}

// TestAttributesThatNoWorkerHas asks for two values of one label, behind many that agree.
func TestAttributesThatNoWorkerHas(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{Client: newClient(t)})
	same := strings.Repeat(`{"name":"zone","value":"eu"},`, 200)
	for last, says := range map[string]string{
		`{"name":"zone","value":"us"}`: `"zone" is there with another value too`, `{"name":"a b"}`: "values[200]",
	} {
		config := `"config":{"attributes":{"values":[` + same + last + `]}}`
		f.send("POST", submitPath, `{"template":{"function_id":"f",`+config+`},"arguments":[["a"]]}`).
			Problem(400, "bad_batch", says)
		f.send("POST", executePath, `{"function_id":"f",`+config+`}`).Problem(400, "bad_batch", says)
	}
	f.send("POST", submitPath, `{"template":{"function_id":"f","config":{"attributes":{"values":[`+
		strings.TrimSuffix(same, ",")+`]}}},"arguments":[["a"]]}`)
	require.Equal(t, map[string]string{"zone": "eu"}, f.head.request().Template.Config.Labels)
}

// TestTopicsAreQueues goes through the forms of a topic.
func TestTopicsAreQueues(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rest.Options{})
	for topic, queue := range map[string]string{
		"": "", "blockless/b7s/general": "", "general": "", "default": "", "gpu": "gpu", "blockless/b7s/gpu": "gpu",
	} {
		f.send("POST", submitPath, `{"topic":"`+topic+`","template":{"function_id":"f"},"arguments":[["a"]]}`)
		require.Equal(t, queue, f.head.request().Template.Config.Queue, topic)
	}
	for _, topic := range []string{"a/b", "blockless/b7s/", "blockless/b7s/a/b", "a b", " "} {
		f.send("POST", submitPath, `{"topic":"`+topic+`","template":{"function_id":"f"},"arguments":[["a"]]}`).
			Problem(400, "not_supported", "topic")
	}
	require.NoError(t, (&batch.Request{
		Template: batch.Template{FunctionID: "f", Config: batch.Config{Queue: "gpu"}}, Arguments: [][]string{nil},
	}).Validate())
}
