package protocol

import "time"

// Consensus is the algorithm by which nodes agree, as roll calls number it.
type Consensus uint

// The algorithms.
const (
	ConsensusNone Consensus = 0
	ConsensusRaft Consensus = 1
	ConsensusPBFT Consensus = 2
)

// HealthCheck says that a node is up. Nothing follows from its absence: nodes of
// b7s don't send it.
type HealthCheck struct {
	Envelope
	// Code is 200, a number.
	Code int `json:"code,omitempty"`
}

// Type returns TypeHealthCheck.
func (*HealthCheck) Type() string { return TypeHealthCheck }

// InstallFunction asks workers to install a function. A worker that fails to
// does not answer.
type InstallFunction struct {
	Envelope
	// ManifestURL is where the manifest is, by HTTP.
	ManifestURL string `json:"manifest_url,omitempty"`
	// CID is the id to install it with.
	CID string `json:"cid,omitempty"`
}

// Type returns TypeInstallFunction.
func (*InstallFunction) Type() string { return TypeInstallFunction }

// InstallFunctionResponse says that a worker has installed a function.
type InstallFunctionResponse struct {
	Envelope
	// Code is CodeAccepted.
	Code Code `json:"code,omitempty"`
	// Message is "installed".
	Message string `json:"message,omitempty"`
	// CID is that of the request.
	CID string `json:"cid,omitempty"`
}

// Type returns TypeInstallFunctionResponse.
func (*InstallFunctionResponse) Type() string { return TypeInstallFunctionResponse }

// RollCall asks for workers that could run a function now. It is published; workers answer
// its author.
type RollCall struct {
	Envelope
	// FunctionID is as in Template.
	FunctionID string `json:"function_id,omitempty"`
	// RequestID is drawn by the head: a UUID.
	RequestID string `json:"request_id,omitempty"`
	// Consensus is 0 for none, 1 for raft and 2 for PBFT. It is always written.
	Consensus Consensus `json:"consensus"`
	// Attributes are those that a worker must have.
	Attributes *Attributes `json:"attributes,omitempty"`
	// Batch says that it is for a batch. DialectStrand has no such field.
	Batch bool `json:"batch,omitempty"`
}

// Type returns TypeRollCall.
func (*RollCall) Type() string { return TypeRollCall }

// RollCallResponse is a worker's answer to RollCall.
type RollCallResponse struct {
	Envelope
	// Code is CodeAccepted if the worker takes part.
	Code Code `json:"code,omitempty"`
	// FunctionID is that of the call.
	FunctionID string `json:"function_id,omitempty"`
	// RequestID is that of the call.
	RequestID string `json:"request_id,omitempty"`
	// BatchSupport repeats the flag of the call: heads of b7s leave out a worker
	// whose answer differs from it. DialectStrand has no such field.
	BatchSupport bool `json:"batch_support,omitempty"`
}

// Type returns TypeRollCallResponse.
func (*RollCallResponse) Type() string { return TypeRollCallResponse }

// FormCluster asks workers to agree on the results of a request.
type FormCluster struct {
	Envelope
	// RequestID is that of the request.
	RequestID string `json:"request_id,omitempty"`
	// Peers are those that agree with each other.
	Peers []string `json:"peers,omitempty"`
	// Consensus is 1 for raft and 2 for PBFT.
	Consensus Consensus `json:"consensus,omitempty"`
	// Connections are where the peers can be reached.
	Connections []PeerInfo `json:"connection_info,omitempty"`
}

// Type returns TypeFormCluster.
func (*FormCluster) Type() string { return TypeFormCluster }

// PeerInfo is where a peer can be reached.
type PeerInfo struct {
	// ID is the peer's id.
	ID string `json:"ID"`
	// Addresses are multiaddresses.
	Addresses []string `json:"Addrs"`
}

// FormClusterResponse is a worker's answer to FormCluster.
type FormClusterResponse struct {
	Envelope
	// RequestID is that of the request.
	RequestID string `json:"request_id,omitempty"`
	// Code is CodeOK if the worker takes part.
	Code Code `json:"code,omitempty"`
	// Consensus is that of the request.
	Consensus Consensus `json:"consensus,omitempty"`
}

// Type returns TypeFormClusterResponse.
func (*FormClusterResponse) Type() string { return TypeFormClusterResponse }

// DisbandCluster ends the agreement on a request.
type DisbandCluster struct {
	Envelope
	// RequestID is that of the request.
	RequestID string `json:"request_id,omitempty"`
}

// Type returns TypeDisbandCluster.
func (*DisbandCluster) Type() string { return TypeDisbandCluster }

// PBFT is the part of a result that a run under PBFT adds.
type PBFT struct {
	// View numbers the leader.
	View *uint `json:"view,omitempty"`
	// Timestamp is that of the order, in RFC 3339.
	Timestamp time.Time `json:"request_timestamp,omitzero"`
	// Replica is the peer that ran it.
	Replica string `json:"replica,omitempty"`
}
