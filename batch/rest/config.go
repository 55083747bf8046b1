package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// batchRequest is the request for a batch, as in b7s.
type batchRequest struct {
	Template  templateBody `json:"template"`
	Arguments [][]string   `json:"arguments" doc:"One list for each run of the function"`
	// MaxAttempts is read by itself: a number that is too large is an error.
	MaxAttempts uint64 `json:"max_attempts,omitempty" doc:"How often a run is tried; at most the operator's limit"`
	Topic       string `json:"topic,omitempty" doc:"Refused unless it is empty or b7s's own"`
}

// templateBody has the fields that all runs of a batch share.
type templateBody struct {
	FunctionID string     `json:"function_id" doc:"The id with which the function was installed, or its module's CID"`
	Method     string     `json:"method,omitempty" doc:"The function's part, such as echo.wasm"`
	Config     configBody `json:"config,omitempty"`
}

// configBody is how a function is run: every field that b7s has, and two more.
type configBody struct {
	Nodes       int            `json:"number_of_nodes,omitempty" doc:"Workers: the first n, all (-1), or one (0)"`
	Environment []batch.EnvVar `json:"env_vars,omitempty"`
	Stdin       string         `json:"stdin,omitempty"`
	Timeout     int            `json:"timeout,omitempty" doc:"Seconds that one attempt may take"`
	Concurrency int            `json:"concurrency,omitempty" doc:"Runs at a time in one chunk. Default 1"`
	RatePerHost float64        `json:"rate_per_host,omitempty" doc:"Runs per second and worker for one target host"`

	Runtime     runtimeBody     `json:"runtime,omitempty"`
	Permissions []string        `json:"permissions,omitempty" doc:"Refused unless empty"`
	Aggregation aggregationBody `json:"result_aggregation,omitempty"`
	Attributes  json.RawMessage `json:"attributes,omitempty" doc:"Refused unless empty"`
	Consensus   string          `json:"consensus_algorithm,omitempty" doc:"Refused unless empty"`
	Threshold   float64         `json:"threshold,omitempty" doc:"Refused unless 0"`
}

// runtimeBody is the part of a config for b7s's runtime.
type runtimeBody struct {
	Entry   string `json:"entry,omitempty" doc:"Refused unless empty"`
	RunTime int64  `json:"run_time,omitempty" doc:"Refused unless 0: use timeout"`
	Debug   bool   `json:"debug_info,omitempty" doc:"Refused unless false"`
	Fuel    int64  `json:"limited_fuel,omitempty" doc:"Refused unless 0"`
	Memory  int64  `json:"limited_memory,omitempty" doc:"Refused unless 0"`
	Logger  string `json:"runtime_logger,omitempty" doc:"Refused unless empty"`
	Drivers string `json:"drivers_root_path,omitempty" doc:"Refused unless empty"`
}

// aggregationBody is the part of a config that merges results in b7s.
type aggregationBody struct {
	Enable     bool            `json:"enable,omitempty" doc:"Refused unless false"`
	Type       string          `json:"type,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// legacyTopic is the topic of b7s that every node has.
const legacyTopic = "blockless/b7s/general"

// refusal is a field that asks for an unsupported feature.
type refusal struct {
	field   string
	asked   bool
	instead string
}

// refusals are the fields that are accepted when they ask for nothing.
func (c *configBody) refusals() []refusal {
	r := &c.Runtime
	return []refusal{
		{"runtime.entry", r.Entry != "", "name an exported function as method"},
		{"runtime.run_time", r.RunTime != 0, "use timeout, in seconds"},
		{"runtime.debug_info", r.Debug, "leave it out"},
		{"runtime.limited_fuel", r.Fuel != 0, "use timeout"},
		{"runtime.limited_memory", r.Memory != 0, "workers set the limit, by --module-memory"},
		{"runtime.runtime_logger", r.Logger != "", "standard error is in the result"},
		{"runtime.drivers_root_path", r.Drivers != "", "leave it out"},
		{"permissions", len(c.Permissions) > 0, "functions reach nothing but their input"},
		{"result_aggregation", c.Aggregation.Enable, "results are returned one by one"},
		{"attributes", !isNothing(c.Attributes), "workers have no attributes"},
		{"consensus_algorithm", c.Consensus != "", "each item is run by one worker"},
		{"threshold", c.Threshold != 0, "each item is run by one worker"},
	}
}

// check returns a problem that names every field that is refused.
func (c *configBody) check(prefix string) error {
	var wrong []stack.FieldError
	for _, r := range c.refusals() {
		if r.asked {
			wrong = append(wrong, stack.FieldError{Location: prefix + r.field, Message: "not supported: " + r.instead})
		}
	}
	return refused(wrong)
}

func refused(wrong []stack.FieldError) error {
	if len(wrong) == 0 {
		return nil
	}
	texts := make([]string, len(wrong))
	for i, w := range wrong {
		texts[i] = w.Location + " is " + w.Message
	}
	p := stack.NewProblem(http.StatusBadRequest, "not_supported", nil, "%s", strings.Join(texts, "; "))
	p.Errors = wrong
	return p
}

func checkTopic(topic string) error {
	if topic == "" || topic == legacyTopic {
		return nil
	}
	return refused([]stack.FieldError{{Location: "topic", Message: "not supported: leave it out"}})
}

// isNothing reports whether a JSON value holds nothing: it is null, false, 0, an
// empty text or list, or an object of nothing else.
func isNothing(raw json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return true // the end: a raw value is valid
		}
		switch token {
		case json.Delim('{'):
			depth++
		case json.Delim('}'):
			depth--
		case json.Delim('['):
			if d.More() {
				return false
			}
		case json.Delim(']'), nil, false, 0.0, "":
		default:
			return false
		}
		if depth > 0 && d.More() {
			_, _ = d.Token() // the name of the field that follows
		}
	}
}

// config returns the settings that have an effect.
func (c *configBody) config() batch.Config {
	return batch.Config{
		Nodes: c.Nodes, Stdin: c.Stdin, Environment: c.Environment, Timeout: c.Timeout, Concurrency: c.Concurrency,
		RatePerHost: c.RatePerHost,
	}
}

// maxTimeout keeps a timeout within what a clock counts, in seconds.
const maxTimeout = 1 << 32

// request returns the request in the form of package batch. It returns a
// problem for a field that is refused, and batch.ErrBadBatch.
func (b *batchRequest) request(key string) (batch.Request, error) {
	request := batch.Request{
		Template: batch.Template{
			FunctionID: b.Template.FunctionID, Method: b.Template.Method, Config: b.Template.Config.config(),
		},
		Arguments: b.Arguments, MaxAttempts: b.MaxAttempts, Key: key,
	}
	if err := checkTopic(b.Topic); err != nil {
		return request, err
	}
	if err := b.Template.Config.check("template.config."); err != nil {
		return request, err
	}
	if err := checkBounds(b.Template.Config.Environment, b.Template.Config.Timeout); err != nil {
		return request, err
	}
	if len(key) > batch.MaxKey {
		return request, stack.BadRequest("the header Idempotency-Key has %d bytes: at most %d", len(key), batch.MaxKey)
	}
	return request, request.Validate()
}

func checkBounds(list []batch.EnvVar, timeout int) error {
	for i, e := range list {
		if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || strings.Contains(e.Value, "\x00") {
			return fmt.Errorf("%w: env_vars[%d]: a name is needed, without =, and no part may have a zero byte",
				batch.ErrBadBatch, i)
		}
	}
	if timeout > maxTimeout {
		return fmt.Errorf("%w: timeout is %d seconds: at most %d", batch.ErrBadBatch, timeout, maxTimeout)
	}
	return nil
}
