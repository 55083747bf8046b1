package protocol

import "github.com/futura-run/futura/batch"

// Template is the common part of all items of a batch.
type Template struct {
	// FunctionID is the id that the function was installed with, or "go:NAME" for a
	// function of Go. At most MaxName bytes, without a separator of paths.
	FunctionID string `json:"function_id"`
	// Method is the file of the function that is run, such as "echo.wasm". At most
	// MaxName bytes, without a separator of paths. Functions of Go and orders with a Module
	// may have none.
	Method string `json:"method"`
	// Config is how it is run. Left out if it is empty.
	Config Config `json:"config,omitzero"`
}

// ItemID returns the id of the work item with these arguments; see batch.ItemID.
func (t *Template) ItemID(arguments []string) string {
	return batch.ItemID(&batch.Template{FunctionID: t.FunctionID, Method: t.Method}, arguments)
}

// Invocation is how b7s writes what an item runs, without its arguments.
func (t *Template) Invocation() string { return t.FunctionID + "/" + t.Method }

// Config is how a function is run. Every field may be left out.
type Config struct {
	// Runtime is for b7s's runtime.
	Runtime *Runtime `json:"runtime,omitempty"`
	// Environment is added to the environment of the function.
	Environment []batch.EnvVar `json:"env_vars,omitempty"`
	// Stdin is the standard input.
	Stdin string `json:"stdin,omitempty"`
	// Permissions are those of b7s's runtime.
	Permissions []string `json:"permissions,omitempty"`
	// Aggregation merges equal results of many nodes.
	Aggregation *Aggregation `json:"result_aggregation,omitempty"`
	// Attributes are those that a node must have.
	Attributes *Attributes `json:"attributes,omitempty"`
	// Nodes is how many nodes take part: the first n, all that answer in time (-1),
	// or one (0).
	Nodes int `json:"number_of_nodes,omitempty"`
	// Timeout bounds one attempt, in seconds. 0 is no bound.
	Timeout int `json:"timeout,omitempty"`
	// Consensus is "raft" or "pbft", or left out.
	Consensus string `json:"consensus_algorithm,omitempty"`
	// Threshold is the part of the nodes that must answer, from 0 to 1.
	Threshold float64 `json:"threshold,omitempty"`
}

// MemoryPage is the unit of Runtime.Memory in orders of b7s, in bytes.
const MemoryPage = 64 << 10

// Runtime configures b7s's runtime.
type Runtime struct {
	// Entry is the exported function that is called.
	Entry string `json:"entry,omitempty"`
	// RunTime is the runtime's own limit of time.
	RunTime uint64 `json:"run_time,omitempty"`
	// Debug has the runtime print what it does.
	Debug bool `json:"debug_info,omitempty"`
	// Fuel bounds the instructions of a run.
	Fuel uint64 `json:"limited_fuel,omitempty"`
	// Memory bounds the memory of a run: in pages of 64 KiB, and in DialectFutura in bytes.
	Memory uint64 `json:"limited_memory,omitempty"`
	// Logger is where the runtime logs to.
	Logger string `json:"runtime_logger,omitempty"`
	// Drivers is where the runtime has its extensions.
	Drivers string `json:"drivers_root_path,omitempty"`
}

// Aggregation is how results of many nodes are merged.
type Aggregation struct {
	// Enable says whether they are.
	Enable bool `json:"enable,omitempty"`
	// Type is the name of the way.
	Type string `json:"type,omitempty"`
	// Parameters are those of the way.
	Parameters []Parameter `json:"parameters,omitempty"`
}

// Parameter is a name with a value.
type Parameter struct {
	// Name may be empty.
	Name string `json:"name,omitempty"`
	// Value may be empty.
	Value string `json:"value,omitempty"`
}

// Attributes are the requirements on a node that takes part.
type Attributes struct {
	// Values are equal to those of the node.
	Values []Parameter `json:"values,omitempty"`
	// Attested says that someone must have signed them.
	Attested bool `json:"attestation_required,omitempty"`
	// Attestors are the parties that must have signed them.
	Attestors Attestors `json:"attestors"`
}

// Attestors are the peers that must have signed attributes.
type Attestors struct {
	// Each are peers that must all have signed.
	Each []string `json:"each,omitempty"`
	// OneOf are peers of which one must have signed.
	OneOf []string `json:"one_of,omitempty"`
}

// NodeResult is how one run of a function ended.
type NodeResult struct {
	// Code is CodeOK for a run that succeeded, and empty where nothing was run.
	Code Code `json:"code"`
	// Result is the output of the run.
	Result Output `json:"result"`
	// Usage is the use of the run.
	Usage Usage `json:"usage"`
	// Signature signs the result, if the node signs.
	Signature string `json:"signature,omitempty"`
	// PBFT is empty without that algorithm.
	PBFT PBFT `json:"pbft"`
	// Metadata is any JSON that the node adds.
	Metadata Raw `json:"metadata,omitempty"`
}

// OK reports whether the function was run and succeeded. A node that did not run
// it says so by an empty code, with exit code 0.
func (r *NodeResult) OK() bool { return r.Code == CodeOK && r.Result.ExitCode == 0 }

// Output is the output of a run. Bytes that are no UTF-8 are lost in it.
type Output struct {
	// Stdout is the standard output.
	Stdout string `json:"stdout"`
	// Stderr is the standard error.
	Stderr string `json:"stderr"`
	// ExitCode is 0 for a run that succeeded, and for none.
	ExitCode int `json:"exit_code"`
}

// Usage is the use of a run; zeros are left out.
type Usage struct {
	// WallClock is how long the run took, in nanoseconds.
	WallClock int64 `json:"wall_clock_time,omitempty"`
	// CPUUser is its time on the processor, in nanoseconds.
	CPUUser int64 `json:"cpu_user_time,omitempty"`
	// CPUSystem is the time of the system for it, in nanoseconds.
	CPUSystem int64 `json:"cpu_sys_time,omitempty"`
	// MemoryMaxKB is the most memory that it had, in units of 1024 bytes.
	MemoryMaxKB int64 `json:"memory_max_kb,omitempty"`
}

// ItemResult is the result of one work item.
type ItemResult struct {
	NodeResult
	// Invocation is FUNCTION/METHOD.
	Invocation string `json:"function_invocation,omitempty"`
	// Arguments are those of the item.
	Arguments []string `json:"arguments,omitempty"`
}
