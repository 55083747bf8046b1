package protocol

// Protocol ids of streams, and the topic that every node of b7s has.
const (
	// StreamB7S carries one message from the opener; nothing is answered on it.
	StreamB7S = "/b7s/work/1.0.0"
	// StreamFutura carries one message each way: the opener's, and its answer.
	StreamFutura = "/futura/work/1.0.0"
	// StreamBlob carries a BlobRequest, a BlobResponse and the bytes of a blob.
	StreamBlob = "/futura/blob/1.0.0"
	// TopicGeneral is the topic of roll calls and installations.
	TopicGeneral = "blockless/b7s/general"
)

// Types of the messages of b7s.
const (
	TypeHealthCheck             = "MsgHealthCheck"
	TypeInstallFunction         = "MsgInstallFunction"
	TypeInstallFunctionResponse = "MsgInstallFunctionResponse"
	TypeRollCall                = "MsgRollCall"
	TypeRollCallResponse        = "MsgRollCallResponse"
	TypeExecute                 = "MsgExecute"
	TypeExecuteResponse         = "MsgExecuteResponse"
	TypeExecuteBatch            = "MsgExecuteBatch"
	TypeExecuteBatchResponse    = "MsgExecuteBatchResponse"
	TypeWorkOrder               = "MsgWorkOrder"
	TypeWorkOrderResponse       = "MsgWorkOrderResponse"
	TypeWorkOrderBatch          = "MsgWorkOrderBatch"
	TypeWorkOrderBatchResponse  = "MsgWorkOrderBatchResponse"
	TypeFormCluster             = "MsgFormCluster"
	TypeFormClusterResponse     = "MsgFormClusterResponse"
	TypeDisbandCluster          = "MsgDisbandCluster"
)

// Types of Futura's own messages.
const (
	TypeHello             = "MsgHello"
	TypeHelloResponse     = "MsgHelloResponse"
	TypeWorkOrderProgress = "MsgWorkOrderProgress"
	TypeCancelOrder       = "MsgCancelOrder"
	TypeTakeBack          = "MsgTakeBack"
	TypeGoodbye           = "MsgGoodbye"
	TypeAck               = "MsgAck"
)

// Message is a message of this package: a pointer to one of its types.
type Message interface {
	// Type is the message's "type".
	Type() string
	// Trace is the context of the trace that the message is part of, or nil.
	Trace() Carrier
	check(c *checker)
}

// Dialect is how a peer spells messages of batches.
type Dialect int

// The dialects.
const (
	// DialectChunk is that of b7s with a store of batches: "chunk_id", "chunks".
	DialectChunk Dialect = iota
	// DialectStrand is that of b7s before it: "strand_id", "strands".
	DialectStrand
	// DialectFutura is DialectChunk with Futura's own fields and messages.
	DialectFutura
)

// String returns the dialect's name.
func (d Dialect) String() string {
	switch d {
	case DialectChunk:
		return "chunk"
	case DialectStrand:
		return "strand"
	case DialectFutura:
		return "futura"
	default:
		return "unknown"
	}
}

// Carrier is the context of a trace, by the names of OpenTelemetry, such as
// "traceparent". Replies have that of their request.
type Carrier map[string]string

// Envelope is what every message may have beside its type.
type Envelope struct {
	// Carrier is the context of a trace, copied into answers.
	Carrier Carrier `json:"carrier,omitempty"`
}

// Trace returns the carrier, or nil.
func (e *Envelope) Trace() Carrier { return e.Carrier }

// Code says how a request ended. On the wire it is a text, except in HealthCheck.
type Code string

// The codes.
const (
	CodeOK             Code = "200"
	CodeAccepted       Code = "202"
	CodeNoContent      Code = "204"
	CodePartial        Code = "206"
	CodeInvalid        Code = "400"
	CodeNotAuthorized  Code = "401"
	CodeNotPermitted   Code = "403"
	CodeNotFound       Code = "404"
	CodeTimeout        Code = "408"
	CodeConflict       Code = "409" // Futura's own
	CodeGone           Code = "410" // Futura's own
	CodeError          Code = "500"
	CodeNotImplemented Code = "501"
	CodeUnavailable    Code = "503"
	CodeNotSupported   Code = "505"
	CodeUnknown        Code = "520"
)
