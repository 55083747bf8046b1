package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// complaint is a part of a request that can't be: one that asks for what there is
// not, or one that is invalid.
type complaint struct {
	stack.FieldError
	unsupported bool
}

// refusal is a complaint about a field that asks for what there is not.
func refusal(location, instead string) complaint {
	return complaint{stack.FieldError{Location: location, Message: "not supported: " + instead}, true}
}

// mistake is a complaint about an invalid field.
func mistake(location, format string, args ...any) complaint {
	return complaint{stack.FieldError{Location: location, Message: fmt.Sprintf(format, args...)}, false}
}

// maxComplaints is how many complaints a problem lists.
const maxComplaints = 100

// oneProblem is one problem with all complaints, nil if there are none.
func oneProblem(wrong []complaint) error {
	if len(wrong) == 0 {
		return nil
	}
	code, texts, fields := "bad_batch", []string{}, []stack.FieldError{}
	for _, c := range wrong[:min(len(wrong), maxComplaints)] {
		text := c.Location + ": " + c.Message
		if c.unsupported {
			code, text = "not_supported", c.Location+" is "+c.Message
		}
		texts, fields = append(texts, strings.TrimPrefix(text, ": ")), append(fields, c.FieldError)
	}
	p := stack.NewProblem(http.StatusBadRequest, code, nil, "%s", strings.Join(texts, "; "))
	p.Errors = fields
	return p
}

// invalid is what package batch says about a request.
func invalid(r *batch.Request) []complaint {
	err := r.Validate()
	if err == nil {
		return nil
	}
	text := err.Error()
	if errors.Is(err, batch.ErrBadBatch) {
		text = strings.TrimPrefix(text, batch.ErrBadBatch.Error()+": ")
	}
	return []complaint{mistake("", "%s", text)}
}

// Topics. Every node of b7s has the general one.
const (
	topicPrefix  = "blockless/b7s/"
	generalTopic = "general"
)

// queueOf is the queue that a topic stands for: NAME and blockless/b7s/NAME for the
// queue NAME, none and the general one for the default queue, which is empty here.
func queueOf(topic string) (queue string, wrong []complaint) {
	queue = strings.TrimPrefix(topic, topicPrefix)
	if topic == "" || queue == generalTopic || queue == layout.DefaultQueue {
		return "", nil
	}
	if layout.CheckQueueName(queue) != nil {
		return "", []complaint{refusal("topic", fmt.Sprintf("%.80q stands for no queue: use the name of a queue, or "+
			"%sNAME, or leave it out", topic, topicPrefix))}
	}
	return queue, nil
}

// Bounds of settings.
const (
	// maxTimeout keeps a timeout within what a clock counts, in seconds.
	maxTimeout = 1 << 32
	// maxPages is the most memory that a module can have.
	maxPages = 1 << 16
)

// complaints are about the settings that ask for what there is not, and about those
// that are invalid. A single run can have some that a batch can't, and the other way
// round.
func (c *configBody) complaints(prefix string, single bool) []complaint {
	var wrong []complaint
	for _, r := range c.refusals(single) {
		if r.asked {
			wrong = append(wrong, refusal(prefix+r.field, r.instead))
		}
	}
	bad := func(field, format string, args ...any) {
		wrong = append(wrong, mistake(prefix+field, format, args...))
	}
	for i, e := range c.Environment {
		if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || strings.Contains(e.Value, "\x00") {
			bad(fmt.Sprintf("env_vars[%d]", i), "a name is needed, without =, and no part may have a zero byte")
		}
	}
	if c.Timeout > maxTimeout {
		bad("timeout", "%d seconds: at most %d", c.Timeout, maxTimeout)
	}
	if t := c.Runtime.RunTime; t < 0 || t > 1000*maxTimeout {
		bad("runtime.run_time", "%d milliseconds: use 0 to %d", t, 1000*maxTimeout)
	}
	if m := c.Runtime.Memory; m < 0 || m > maxPages {
		bad("runtime.limited_memory", "%d pages of 64 KiB: use 0 to %d", m, maxPages)
	}
	if single && (c.Threshold < 0 || c.Threshold > 1) {
		bad("threshold", "%v: use the share of workers that must answer, from 0 to 1", c.Threshold)
	}
	return append(wrong, c.attributeComplaints(prefix)...)
}

func (c *configBody) attributeComplaints(prefix string) (wrong []complaint) {
	attributes, err := c.attributes()
	switch {
	case err != nil:
		return []complaint{mistake(prefix+"attributes", "use {\"values\": [{\"name\", \"value\"}]}")}
	case attributes.Required || !isNothing(attributes.By):
		wrong = append(wrong, refusal(prefix+"attributes", "labels of workers are not attested: use values alone"))
	case len(attributes.Values) == 0 && !isNothing(c.Attributes):
		wrong = append(wrong, refusal(prefix+"attributes", "use values"))
	}
	asked := map[string]string{}
	for i, v := range attributes.Values {
		location := fmt.Sprintf("%sattributes.values[%d]", prefix, i)
		if other, twice := asked[v.Name]; twice && other != v.Value {
			wrong = append(wrong, mistake(location, "%.80q is there with another value too: no worker has both", v.Name))
		} else if err := layout.CheckLabel(v.Name, v.Value); err != nil {
			wrong = append(wrong, mistake(location, "%v", err))
		}
		asked[v.Name] = v.Value
		if len(wrong) == maxComplaints {
			break
		}
	}
	return wrong
}

// asking is a field that asks for what there is not, if asked.
type asking struct {
	field   string
	asked   bool
	instead string
}

// refusals are the fields that are accepted when they ask for nothing.
func (c *configBody) refusals(single bool) []asking {
	r, a := &c.Runtime, &c.Aggregation
	list := []asking{
		{"runtime.debug_info", r.Debug, "leave it out"},
		{"runtime.limited_fuel", r.Fuel != 0, "use timeout"},
		{"runtime.runtime_logger", r.Logger != "", "standard error is in the result"},
		{"runtime.drivers_root_path", r.Drivers != "", "leave it out"},
		{"permissions", len(c.Permissions) > 0, "functions reach nothing but their input"},
		{"consensus_algorithm", c.Consensus != "", "workers run a function each for itself"},
	}
	if single {
		const alone = "a single execution runs once on each worker; use a batch"
		return append(list,
			asking{"result_aggregation.type", a.Enable && a.Type != "", "results are merged by their output"},
			asking{"result_aggregation.parameters", a.Enable && !isNothing(a.Parameters), "there are none"},
			asking{"concurrency", c.Concurrency > 1, alone}, asking{"rate_per_host", c.RatePerHost != 0, alone})
	}
	return append(list,
		asking{"result_aggregation", a.Enable, "results are returned one by one"},
		asking{"threshold", c.Threshold != 0, "each item is run by one worker"})
}
