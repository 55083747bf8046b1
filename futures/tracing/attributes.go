package tracing

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// Attributes of spans.
const (
	keyFunction = attribute.Key("futura.function")
	keyQueue    = attribute.Key("futura.queue")
	keyID       = attribute.Key("futura.id")
	keyCount    = attribute.Key("futura.futures")
	keyAttempt  = attribute.Key("futura.attempt")
	keyWorker   = attribute.Key("futura.worker")
	keySchedule = attribute.Key("futura.schedule")
	keyLane     = attribute.Key("futura.lane.key")
	keyError    = semconv.ErrorTypeKey
)

// nameOf is the name of a span. It has no ids, not the one of a module's content either, and
// nothing that is no function's name.
func nameOf(operation, function string) string {
	if layout.CheckFunctionName(function) != nil {
		return operation
	}
	module, method, isModule := layout.SplitWasm(function)
	if isModule && isContentID(module) {
		function = "wasm"
		if method != "" {
			function += "/" + method
		}
	}
	return operation + " " + function
}

// isContentID reports whether the name of a module is that of its content: the text of a CID
// of version 1 in base 32, or of version 0.
func isContentID(module string) bool {
	return len(module) == 59 && strings.HasPrefix(module, "baf") || len(module) == 46 && strings.HasPrefix(module, "Qm")
}

// attributes are those of n futures of a function and a queue, empty for several.
func (t *Tracing) attributes(operation, function, queue string, n int) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 16)
	all = append(all, keyCount.Int(n))
	if layout.CheckFunctionName(function) == nil {
		all = append(all, keyFunction.String(function))
	}
	if queue != "" {
		all = append(all, keyQueue.String(queue))
	}
	if !t.messaging {
		return all
	}
	all = append(all, semconv.MessagingSystemKey.String("futura"), semconv.MessagingOperationName(operation),
		semconv.MessagingOperationTypeKey.String(operation))
	if queue != "" {
		all = append(all, semconv.MessagingDestinationName(queue))
	}
	if n > 1 {
		all = append(all, semconv.MessagingBatchMessageCount(n))
	}
	return all
}

// id are the attributes of one future.
func (t *Tracing) id(id layout.ID) []attribute.KeyValue {
	all := []attribute.KeyValue{keyID.String(id.String())}
	if t.messaging {
		all = append(all, semconv.MessagingMessageID(id.String()))
	}
	return all
}

// attempt are the attributes of an attempt.
func (t *Tracing) attempt(info *workers.Info) []attribute.KeyValue {
	all := append(t.attributes("process", info.Function, info.Queue, 1), t.id(info.ID)...)
	all = append(all, keyAttempt.Int(info.Attempt), keyWorker.String(string(info.Worker)))
	if info.Schedule != "" {
		all = append(all, keySchedule.String(info.Schedule))
	}
	return all
}
