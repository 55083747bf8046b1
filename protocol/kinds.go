package protocol

// Kind is a type of messages: who sends it to whom, and how.
type Kind struct {
	// Type is the message's "type".
	Type string
	// From and To are roles: head, worker, client or any.
	From, To string
	// Direct says that it may come on a stream, Published that it may come on a
	// topic. Refuse it elsewhere: the sender of what was published is not on the
	// connection that it came by.
	Direct, Published bool
	// Own says that it is Futura's own, and is sent on StreamFutura only.
	Own bool
	// Answer is the type of its answer, empty if it has none. On StreamB7S an answer
	// comes on a stream of its own. On StreamFutura an Ack is the answer on the stream
	// to all but Hello, ExecuteBatch and Execute.
	Answer string
}

// New returns an empty message of the kind.
func (k Kind) New() Message { return newMessage(k.Type) }

// Kinds are all kinds of messages, those of b7s first.
func Kinds() []Kind {
	return []Kind{
		{Type: TypeHealthCheck, From: "any", To: "any", Published: true},
		{Type: TypeInstallFunction, From: "head", To: "worker", Direct: true, Published: true,
			Answer: TypeInstallFunctionResponse},
		{Type: TypeInstallFunctionResponse, From: "worker", To: "head", Direct: true},
		{Type: TypeRollCall, From: "head", To: "worker", Published: true, Answer: TypeRollCallResponse},
		{Type: TypeRollCallResponse, From: "worker", To: "head", Direct: true},
		{Type: TypeExecuteBatch, From: "client", To: "head", Direct: true, Answer: TypeExecuteBatchResponse},
		{Type: TypeExecuteBatchResponse, From: "head", To: "client", Direct: true},
		{Type: TypeWorkOrderBatch, From: "head", To: "worker", Direct: true, Answer: TypeWorkOrderBatchResponse},
		{Type: TypeWorkOrderBatchResponse, From: "worker", To: "head", Direct: true},
		{Type: TypeExecute, From: "client", To: "head", Direct: true, Answer: TypeExecuteResponse},
		{Type: TypeExecuteResponse, From: "head", To: "client", Direct: true},
		{Type: TypeWorkOrder, From: "head", To: "worker", Direct: true, Answer: TypeWorkOrderResponse},
		{Type: TypeWorkOrderResponse, From: "worker", To: "head", Direct: true},
		{Type: TypeFormCluster, From: "head", To: "worker", Direct: true, Answer: TypeFormClusterResponse},
		{Type: TypeFormClusterResponse, From: "worker", To: "head", Direct: true},
		{Type: TypeDisbandCluster, From: "head", To: "worker", Direct: true},

		{Type: TypeHello, From: "worker", To: "head", Direct: true, Own: true, Answer: TypeHelloResponse},
		{Type: TypeHelloResponse, From: "head", To: "worker", Direct: true, Own: true},
		{Type: TypeWorkOrderProgress, From: "worker", To: "head", Direct: true, Own: true, Answer: TypeAck},
		{Type: TypeCancelOrder, From: "head", To: "worker", Direct: true, Own: true, Answer: TypeAck},
		{Type: TypeTakeBack, From: "head", To: "worker", Direct: true, Own: true, Answer: TypeAck},
		{Type: TypeGoodbye, From: "worker", To: "head", Direct: true, Own: true, Answer: TypeAck},
		{Type: TypeAck, From: "any", To: "any", Direct: true, Own: true},
	}
}

// KindOf returns the kind of a message. A batch's reply is one whatever type it
// has on the wire.
func KindOf(m Message) Kind {
	name := m.Type()
	if _, ok := m.(*ExecuteBatchResponse); ok {
		name = TypeExecuteBatchResponse
	}
	for _, k := range Kinds() {
		if k.Type == name {
			return k
		}
	}
	return Kind{}
}

// newMessage returns an empty message of a type, or nil.
func newMessage(name string) Message {
	switch name {
	case TypeHealthCheck:
		return &HealthCheck{}
	case TypeInstallFunction:
		return &InstallFunction{}
	case TypeInstallFunctionResponse:
		return &InstallFunctionResponse{}
	case TypeRollCall:
		return &RollCall{}
	case TypeRollCallResponse:
		return &RollCallResponse{}
	case TypeExecuteBatch:
		return &ExecuteBatch{}
	case TypeExecuteBatchResponse:
		return &ExecuteBatchResponse{}
	case TypeWorkOrderBatch:
		return &WorkOrderBatch{}
	case TypeWorkOrderBatchResponse:
		return &WorkOrderBatchResponse{}
	case TypeExecute:
		return &Execute{}
	case TypeExecuteResponse:
		return &ExecuteResponse{}
	case TypeWorkOrder:
		return &WorkOrder{}
	case TypeWorkOrderResponse:
		return &WorkOrderResponse{}
	case TypeFormCluster:
		return &FormCluster{}
	case TypeFormClusterResponse:
		return &FormClusterResponse{}
	case TypeDisbandCluster:
		return &DisbandCluster{}
	default:
		return newOwn(name)
	}
}

// newOwn returns an empty message of a type of Futura's own, or nil.
func newOwn(name string) Message {
	switch name {
	case TypeHello:
		return &Hello{}
	case TypeHelloResponse:
		return &HelloResponse{}
	case TypeWorkOrderProgress:
		return &WorkOrderProgress{}
	case TypeCancelOrder:
		return &CancelOrder{}
	case TypeTakeBack:
		return &TakeBack{}
	case TypeGoodbye:
		return &Goodbye{}
	case TypeAck:
		return &Ack{}
	default:
		return nil
	}
}
