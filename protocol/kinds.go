package protocol

import (
	"reflect"
	"slices"
)

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
	of     Message
}

// New returns an empty message of the kind.
func (k Kind) New() Message { return reflect.New(reflect.TypeOf(k.of).Elem()).Interface().(Message) }

var kinds = func() []Kind {
	all := []Kind{
		{of: &HealthCheck{}, From: "any", To: "any", Published: true},
		{of: &InstallFunction{}, From: "head", To: "worker", Direct: true, Published: true,
			Answer: TypeInstallFunctionResponse},
		{of: &InstallFunctionResponse{}, From: "worker", To: "head", Direct: true},
		{of: &RollCall{}, From: "head", To: "worker", Published: true, Answer: TypeRollCallResponse},
		{of: &RollCallResponse{}, From: "worker", To: "head", Direct: true},
		{of: &ExecuteBatch{}, From: "client", To: "head", Direct: true, Answer: TypeExecuteBatchResponse},
		{of: &ExecuteBatchResponse{}, From: "head", To: "client", Direct: true},
		{of: &WorkOrderBatch{}, From: "head", To: "worker", Direct: true, Answer: TypeWorkOrderBatchResponse},
		{of: &WorkOrderBatchResponse{}, From: "worker", To: "head", Direct: true},
		{of: &Execute{}, From: "client", To: "head", Direct: true, Answer: TypeExecuteResponse},
		{of: &ExecuteResponse{}, From: "head", To: "client", Direct: true},
		{of: &WorkOrder{}, From: "head", To: "worker", Direct: true, Answer: TypeWorkOrderResponse},
		{of: &WorkOrderResponse{}, From: "worker", To: "head", Direct: true},
		{of: &FormCluster{}, From: "head", To: "worker", Direct: true, Answer: TypeFormClusterResponse},
		{of: &FormClusterResponse{}, From: "worker", To: "head", Direct: true},
		{of: &DisbandCluster{}, From: "head", To: "worker", Direct: true},

		{of: &Hello{}, From: "worker", To: "head", Direct: true, Own: true, Answer: TypeHelloResponse},
		{of: &HelloResponse{}, From: "head", To: "worker", Direct: true, Own: true},
		{of: &WorkOrderProgress{}, From: "worker", To: "head", Direct: true, Own: true, Answer: TypeAck},
		{of: &CancelOrder{}, From: "head", To: "worker", Direct: true, Own: true, Answer: TypeAck},
		{of: &TakeBack{}, From: "head", To: "worker", Direct: true, Own: true, Answer: TypeAck},
		{of: &Goodbye{}, From: "worker", To: "head", Direct: true, Own: true, Answer: TypeAck},
		{of: &Ack{}, From: "any", To: "any", Direct: true, Own: true},
	}
	for i := range all {
		all[i].Type = all[i].of.Type()
	}
	return all
}()

// Kinds are all kinds of messages, those of b7s first.
func Kinds() []Kind { return slices.Clone(kinds) }

// kindNamed returns the kind of a type, the zero Kind if there is none.
func kindNamed(name string) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Type == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{}
}

// KindOf returns the kind of a message. A batch's reply is one whatever type it
// has on the wire.
func KindOf(m Message) Kind {
	if _, ok := m.(*ExecuteBatchResponse); ok {
		return kindNamed(TypeExecuteBatchResponse)
	}
	return kindNamed(m.Type())
}

// newMessage returns an empty message of a type, or nil.
func newMessage(name string) Message {
	if k := kindNamed(name); k.of != nil {
		return k.New()
	}
	return nil
}
