package protocol

import "time"

// Execute asks a head to run a function once.
type Execute struct {
	Envelope
	// FunctionID is as in Template.
	FunctionID string `json:"function_id"`
	// Method is as in Template.
	Method string `json:"method"`
	// Arguments are those of the run.
	Arguments []string `json:"arguments,omitempty"`
	// Parameters are the arguments as releases of b7s without batches have them.
	Parameters []Parameter `json:"parameters,omitempty"`
	// Config is how it is run.
	Config Config `json:"config"`
	// Signature signs the request, if the client signs.
	Signature string `json:"signature,omitempty"`
	// Topic is where the roll call is published. Defaults to TopicGeneral.
	Topic string `json:"topic,omitempty"`
}

// Type returns TypeExecute.
func (*Execute) Type() string { return TypeExecute }

// ExecuteResponse is the head's answer to Execute.
type ExecuteResponse struct {
	Envelope
	// RequestID is drawn by the head: a UUID.
	RequestID string `json:"request_id,omitempty"`
	// Code is CodeOK if enough peers answered.
	Code Code `json:"code,omitempty"`
	// Results are by the id of the peer.
	Results map[string]NodeResult `json:"results,omitempty"`
	// Cluster names the peers.
	Cluster Nodes `json:"cluster"`
	// Message describes the error.
	Message string `json:"message,omitempty"`
}

// Type returns TypeExecuteResponse.
func (*ExecuteResponse) Type() string { return TypeExecuteResponse }

// Nodes are the peers that ran a function, and their leader.
type Nodes struct {
	// Main is the peer that led, if one did.
	Main string `json:"main,omitempty"`
	// Peers are those that took part.
	Peers []string `json:"peers,omitempty"`
}

// WorkOrder asks a worker to run a function once.
type WorkOrder struct {
	Envelope
	// FunctionID is as in Template.
	FunctionID string `json:"function_id"`
	// Method is as in Template.
	Method string `json:"method"`
	// Arguments are those of the run.
	Arguments []string `json:"arguments,omitempty"`
	// Parameters are the arguments as releases of b7s without batches have them.
	Parameters []Parameter `json:"parameters,omitempty"`
	// Config is how it is run.
	Config Config `json:"config"`
	// Signature signs the request, if the client signs.
	Signature string `json:"signature,omitempty"`
	// RequestID is drawn by the head: a UUID.
	RequestID string `json:"request_id,omitempty"`
	// Timestamp is when the head got the request, in RFC 3339.
	Timestamp time.Time `json:"timestamp,omitzero"`
}

// Type returns TypeWorkOrder.
func (*WorkOrder) Type() string { return TypeWorkOrder }

// WorkOrderResponse is the worker's answer to WorkOrder.
type WorkOrderResponse struct {
	Envelope
	// RequestID is that of the order.
	RequestID string `json:"request_id,omitempty"`
	// Code is that of the result, or says why there is none.
	Code Code `json:"code,omitempty"`
	// Result is how the run ended.
	Result NodeResult `json:"result"`
	// Message describes the error.
	Message string `json:"error_message,omitempty"`
}

// Type returns TypeWorkOrderResponse.
func (*WorkOrderResponse) Type() string { return TypeWorkOrderResponse }
