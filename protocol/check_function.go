package protocol

import (
	"crypto/md5"
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/futura-run/futura/batch"
)

// MaxTime is the longest timeout, and the longest wait for another attempt, of a message: 100 years.
const MaxTime = 100 * 366 * 24 * time.Hour

const maxSeconds = int64(MaxTime / time.Second)

func (c *checker) template(t *Template, method string) {
	left := c.enter("template")
	c.function(t.FunctionID, method)
	c.config(&t.Config)
	c.prefix = left
}

func (c *checker) config(f *Config) {
	left := c.enter("config")
	c.within("number_of_nodes", int64(f.Nodes), -1, batch.MaxItems)
	c.within("timeout", int64(f.Timeout), 0, maxSeconds)
	c.text("stdin", f.Stdin, batch.MaxItem)
	c.most("env_vars", len(f.Environment), MaxNames, "entries")
	n := 0
	for _, e := range f.Environment {
		n += written(e.Name) + written(e.Value)
	}
	c.most("env_vars", n, batch.MaxItem, "bytes")
	c.names("permissions", f.Permissions)
	if f.Consensus != "" && f.Consensus != "raft" && f.Consensus != "pbft" {
		c.fail(ErrInvalid, "consensus_algorithm", `is %.20q: use raft, pbft or ""`, f.Consensus)
	}
	c.note("consensus_algorithm", "raft, pbft or empty")
	if f.Threshold < 0 || f.Threshold > 1 {
		c.fail(ErrInvalid, "threshold", "is %g: from 0 to 1", f.Threshold)
	}
	c.note("threshold", "from 0 to 1")
	if f.Runtime != nil {
		c.text("runtime.entry", f.Runtime.Entry, MaxText)
		c.text("runtime.runtime_logger", f.Runtime.Logger, MaxText)
		c.text("runtime.drivers_root_path", f.Runtime.Drivers, MaxText)
	}
	if f.Aggregation != nil {
		c.line("result_aggregation.type", f.Aggregation.Type, MaxName)
		c.parameters("result_aggregation.parameters", f.Aggregation.Parameters)
	}
	c.attributes(f.Attributes)
	c.prefix = left
}

func (c *checker) parameters(field string, list []Parameter) {
	c.most(field, len(list), MaxNames, "entries")
	left := c.enter(field)
	for _, p := range list {
		c.line("name", p.Name, MaxName)
		c.text("value", p.Value, c.limits.ArgumentBytes)
	}
	c.prefix = left
}

func (c *checker) attributes(a *Attributes) {
	if a == nil {
		return
	}
	left := c.enter("attributes")
	c.parameters("values", a.Values)
	c.names("attestors.each", a.Attestors.Each)
	c.names("attestors.one_of", a.Attestors.OneOf)
	c.prefix = left
}

func (c *checker) results(results map[string]ItemResult) {
	c.note("results", "by MD5 sums, in lower-case hex")
	left := c.enter("results")
	for id, result := range results {
		if c.err != nil {
			break
		}
		if !isMD5(id) {
			c.fail(ErrInvalid, "ID", "is %.60q: use the MD5 of the item, in lower-case hex", id)
		}
		c.line("function_invocation", result.Invocation, 2*MaxName+1)
		c.arguments("arguments", result.Arguments)
		c.result(&result.NodeResult)
	}
	c.prefix = left
}

// isMD5 reports whether a text is a sum in lower-case hex.
func isMD5(id string) bool {
	notHex := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }
	return len(id) == hex.EncodedLen(md5.Size) && !strings.ContainsFunc(id, notHex)
}

func (c *checker) result(r *NodeResult) {
	c.code("code", r.Code)
	c.exit("result.exit_code", r.Result.ExitCode)
	c.usage(&r.Usage)
	c.line("signature", r.Signature, MaxText)
	c.line("pbft.replica", r.PBFT.Replica, MaxName)
	c.most("metadata", r.Metadata.written(), MaxMetadata, "bytes")
}

func (c *checker) exit(field string, code int) {
	c.within(field, int64(code), math.MinInt32, math.MaxInt32)
}

func (c *checker) usage(u *Usage) {
	c.natural("usage.wall_clock_time", u.WallClock)
	c.natural("usage.cpu_user_time", u.CPUUser)
	c.natural("usage.cpu_sys_time", u.CPUSystem)
	c.natural("usage.memory_max_kb", u.MemoryMaxKB)
}
