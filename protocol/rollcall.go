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
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	CID     string `json:"cid,omitempty"`
}

// Type returns TypeInstallFunctionResponse.
func (*InstallFunctionResponse) Type() string { return TypeInstallFunctionResponse }

// RollCall asks who could run a function now. It is published; workers answer
// its author.
type RollCall struct {
	Envelope
	FunctionID string    `json:"function_id,omitempty"`
	RequestID  string    `json:"request_id,omitempty"`
	Consensus  Consensus `json:"consensus"`
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
	Code       Code   `json:"code,omitempty"`
	FunctionID string `json:"function_id,omitempty"`
	RequestID  string `json:"request_id,omitempty"`
	// BatchSupport repeats the flag of the call: heads of b7s leave out a worker
	// whose answer differs from it. DialectStrand has no such field.
	BatchSupport bool `json:"batch_support,omitempty"`
}

// Type returns TypeRollCallResponse.
func (*RollCallResponse) Type() string { return TypeRollCallResponse }

// FormCluster asks workers to agree on the results of a request.
type FormCluster struct {
	Envelope
	RequestID   string     `json:"request_id,omitempty"`
	Peers       []string   `json:"peers,omitempty"`
	Consensus   Consensus  `json:"consensus,omitempty"`
	Connections []PeerInfo `json:"connection_info,omitempty"`
}

// Type returns TypeFormCluster.
func (*FormCluster) Type() string { return TypeFormCluster }

// PeerInfo is where a peer can be reached.
type PeerInfo struct {
	ID        string   `json:"ID"`
	Addresses []string `json:"Addrs"`
}

// FormClusterResponse is a worker's answer to FormCluster.
type FormClusterResponse struct {
	Envelope
	RequestID string    `json:"request_id,omitempty"`
	Code      Code      `json:"code,omitempty"`
	Consensus Consensus `json:"consensus,omitempty"`
}

// Type returns TypeFormClusterResponse.
func (*FormClusterResponse) Type() string { return TypeFormClusterResponse }

// DisbandCluster ends the agreement on a request.
type DisbandCluster struct {
	Envelope
	RequestID string `json:"request_id,omitempty"`
}

// Type returns TypeDisbandCluster.
func (*DisbandCluster) Type() string { return TypeDisbandCluster }

// PBFT is what a run under PBFT adds to its result.
type PBFT struct {
	View      *uint     `json:"view,omitempty"`
	Timestamp time.Time `json:"request_timestamp,omitzero"`
	Replica   string    `json:"replica,omitempty"`
}
