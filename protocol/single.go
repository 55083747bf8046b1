package protocol

import "time"

// Execute asks a head to run a function once.
type Execute struct {
	Envelope
	FunctionID string   `json:"function_id"`
	Method     string   `json:"method"`
	Arguments  []string `json:"arguments,omitempty"`
	// Parameters are the arguments as releases of b7s without batches have them.
	Parameters []Parameter `json:"parameters,omitempty"`
	Config     Config      `json:"config"`
	Signature  string      `json:"signature,omitempty"`
	// Topic is where the roll call is published. Defaults to TopicGeneral.
	Topic string `json:"topic,omitempty"`
}

// Type returns TypeExecute.
func (*Execute) Type() string { return TypeExecute }

// ExecuteResponse is the head's answer to Execute.
type ExecuteResponse struct {
	Envelope
	RequestID string `json:"request_id,omitempty"`
	Code      Code   `json:"code,omitempty"`
	// Results are by the id of the peer.
	Results map[string]NodeResult `json:"results,omitempty"`
	Cluster Nodes                 `json:"cluster"`
	// Message says what went wrong.
	Message string `json:"message,omitempty"`
}

// Type returns TypeExecuteResponse.
func (*ExecuteResponse) Type() string { return TypeExecuteResponse }

// Nodes are the peers that ran a function, and who led them.
type Nodes struct {
	Main  string   `json:"main,omitempty"`
	Peers []string `json:"peers,omitempty"`
}

// WorkOrder asks a worker to run a function once.
type WorkOrder struct {
	Envelope
	FunctionID string   `json:"function_id"`
	Method     string   `json:"method"`
	Arguments  []string `json:"arguments,omitempty"`
	// Parameters are the arguments as releases of b7s without batches have them.
	Parameters []Parameter `json:"parameters,omitempty"`
	Config     Config      `json:"config"`
	Signature  string      `json:"signature,omitempty"`
	RequestID  string      `json:"request_id,omitempty"`
	Timestamp  time.Time   `json:"timestamp,omitzero"`
}

// Type returns TypeWorkOrder.
func (*WorkOrder) Type() string { return TypeWorkOrder }

// WorkOrderResponse is the worker's answer to WorkOrder.
type WorkOrderResponse struct {
	Envelope
	RequestID string     `json:"request_id,omitempty"`
	Code      Code       `json:"code,omitempty"`
	Result    NodeResult `json:"result"`
	// Message says what went wrong.
	Message string `json:"error_message,omitempty"`
}

// Type returns TypeWorkOrderResponse.
func (*WorkOrderResponse) Type() string { return TypeWorkOrderResponse }
