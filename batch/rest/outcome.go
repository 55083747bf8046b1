package rest

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/futures/httpapi/stack"
)

// outcome is the state of a batch in the terms of b7s.
type outcome struct {
	// name is the row's in the table of the reference.
	name string
	// code is that of b7s, message empty where all is well.
	code, message string
	// status is that of the answer.
	status int
}

// outcomeOf is the one table of batches, codes, messages and statuses. An
// unknown batch is a problem, with the status 404.
func outcomeOf(b *batch.Batch, p batch.Progress) outcome {
	done, failed := p[batch.Done], p[batch.PermanentlyFailed]
	count := func(code int, name, format string, args ...any) outcome {
		return outcome{name, strconv.Itoa(code), fmt.Sprintf(format, args...), http.StatusOK}
	}
	reason := ""
	if b.Reason != "" {
		reason = ": " + b.Reason
	}
	switch {
	case b.Status == batch.PermanentlyFailed:
		return count(http.StatusGone, "cancelled", "cancelled%s; %d of %d items are done", reason, done, b.Items)
	case b.Items == 0:
		return count(http.StatusNoContent, "empty", "the batch has no items")
	case b.Status == batch.Created:
		return count(http.StatusAccepted, "created", "not started yet%s", reason)
	case b.Status != batch.Done:
		return count(http.StatusAccepted, "running", "running: %d of %d items are over%s", done+failed, b.Items, reason)
	case failed == 0:
		return outcome{"done", strconv.Itoa(http.StatusOK), "", http.StatusOK}
	case done == 0:
		return count(http.StatusInternalServerError, "failed", "%d of %d items failed for good", failed, b.Items)
	default:
		return count(http.StatusPartialContent, "partly_failed", "%d of %d items failed for good", failed, b.Items)
	}
}

// unknownBatch is the problem for a batch that does not exist.
func unknownBatch(id string, err error) error {
	return stack.NewProblem(http.StatusNotFound, "not_found", err, "there is no batch %.60q", id)
}
