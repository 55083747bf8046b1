package rest

import (
	"bytes"
	"encoding/json"

	"github.com/futura-run/futura/batch"
)

// batchRequest is the request for a batch, as in b7s.
type batchRequest struct {
	Template  templateBody `json:"template"`
	Arguments [][]string   `json:"arguments" doc:"One list for each run of the function"`
	// MaxAttempts is read by itself: a number that is too large is an error.
	MaxAttempts uint64 `json:"max_attempts,omitempty" doc:"How often a run is tried; at most the operator's limit"`
	Topic       string `json:"topic,omitempty" doc:"The queue, NAME or blockless/b7s/NAME. Default: the default queue"`
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
	RatePerHost float64        `json:"rate_per_host,omitempty" doc:"Runs per second for one target host, over all workers"`

	Runtime     runtimeBody     `json:"runtime,omitempty"`
	Permissions []string        `json:"permissions,omitempty" doc:"Refused unless empty"`
	Aggregation aggregationBody `json:"result_aggregation,omitempty"`
	Attributes  json.RawMessage `json:"attributes,omitempty" doc:"Labels of workers: {values: [{name, value}]}"`
	Consensus   string          `json:"consensus_algorithm,omitempty" doc:"Refused unless empty"`
	Threshold   float64         `json:"threshold,omitempty" doc:"Of a single run the share that must answer; else refused"`
}

// runtimeBody is the part of a config for b7s's runtime.
type runtimeBody struct {
	Entry   string `json:"entry,omitempty" doc:"The export to call. Default _start"`
	RunTime int64  `json:"run_time,omitempty" doc:"Milliseconds that one attempt may take"`
	Debug   bool   `json:"debug_info,omitempty" doc:"Refused unless false"`
	Fuel    int64  `json:"limited_fuel,omitempty" doc:"Refused unless 0"`
	Memory  int64  `json:"limited_memory,omitempty" doc:"The most memory, in pages of 64 KiB"`
	Logger  string `json:"runtime_logger,omitempty" doc:"Refused unless empty"`
	Drivers string `json:"drivers_root_path,omitempty" doc:"Refused unless empty"`
}

// aggregationBody is the part of a config that merges results in b7s.
type aggregationBody struct {
	Enable     bool            `json:"enable,omitempty" doc:"Single runs are always merged; refused for batches"`
	Type       string          `json:"type,omitempty" doc:"Refused if it is enabled, unless empty"`
	Parameters json.RawMessage `json:"parameters,omitempty" doc:"Refused if it is enabled, unless empty"`
}

// attributesBody says what workers must have.
type attributesBody struct {
	Values   []parameterBody `json:"values"`
	Required bool            `json:"attestation_required"`
	By       json.RawMessage `json:"attestors"`
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

// pageBytes is the unit of limited_memory.
const pageBytes = 64 << 10

// config returns the settings that have an effect. They are valid if complaints says
// nothing about them.
func (c *configBody) config(queue string) batch.Config {
	config := batch.Config{
		Nodes: c.Nodes, Stdin: c.Stdin, Environment: c.Environment, Timeout: c.Timeout, Concurrency: c.Concurrency,
		RatePerHost: c.RatePerHost, Queue: queue, RunTime: c.Runtime.RunTime, Memory: c.Runtime.Memory * pageBytes,
	}
	if c.Runtime.Entry != startEntry {
		config.Entry = c.Runtime.Entry
	}
	if attributes, err := c.attributes(); err == nil {
		for _, v := range attributes.Values {
			if config.Labels == nil {
				config.Labels = map[string]string{}
			}
			config.Labels[v.Name] = v.Value
		}
	}
	return config
}

// startEntry is the export that is called where a config names none.
const startEntry = "_start"

func (c *configBody) attributes() (a attributesBody, err error) {
	if !isNothing(c.Attributes) {
		err = json.Unmarshal(c.Attributes, &a)
	}
	return a, err
}

// request returns the request in the form of package batch, or a problem that names
// everything that is wrong with it.
func (b *batchRequest) request(key string) (batch.Request, error) {
	queue, wrong := queueOf(b.Topic)
	request := batch.Request{
		Template: batch.Template{
			FunctionID: b.Template.FunctionID, Method: b.Template.Method, Config: b.Template.Config.config(queue),
		},
		Arguments: b.Arguments, MaxAttempts: b.MaxAttempts, Key: key,
	}
	wrong = append(wrong, b.Template.Config.complaints("template.config.", false)...)
	if len(key) > batch.MaxKey {
		wrong = append(wrong, mistake("Idempotency-Key", "the header has %d bytes: at most %d", len(key), batch.MaxKey))
	}
	return request, oneProblem(append(wrong, invalid(&request)...))
}
