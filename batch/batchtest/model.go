package batchtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/batch"
)

// naive is a plain implementation of the contract that ignores speed and
// concurrency.
type naive struct {
	status   batch.Status
	reason   string
	attempts int
	items    []batch.Item
	chunks   map[string]*batch.Chunk
}

func newNaive(attempts int, template *batch.Template, arguments [][]string) *naive {
	n := &naive{attempts: attempts, chunks: map[string]*batch.Chunk{}}
	for i, list := range arguments {
		n.items = append(n.items, batch.Item{Index: i, ID: batch.ItemID(template, list), Arguments: list})
	}
	return n
}

// in returns the indexes of the items in some states.
func (n *naive) in(states ...batch.Status) (found []int) {
	for i := range n.items {
		if slices.Contains(states, n.items[i].Status) {
			found = append(found, i)
		}
	}
	return found
}

// running returns the indexes of the items that are in progress under a chunk.
func (n *naive) running(chunk string) (found []int) {
	for _, i := range n.in(batch.InProgress) {
		if n.items[i].Chunk == chunk {
			found = append(found, i)
		}
	}
	return found
}

func (n *naive) assign(c batch.Chunk, items []int) (given []int) {
	if n.status.Over() {
		return nil
	}
	for _, i := range items {
		if !slices.Contains(n.in(batch.Created, batch.Failed), i) {
			continue
		}
		if n.chunks[c.ID] == nil {
			c.Items = 0
			n.chunks[c.ID] = &c
		}
		n.chunks[c.ID].Items++
		n.items[i].Status, n.items[i].Chunk, n.items[i].Worker = batch.InProgress, c.ID, c.Worker
		n.status = batch.InProgress
	}
	for _, i := range n.running(c.ID) {
		if slices.Contains(items, i) {
			given = append(given, i)
		}
	}
	return given
}

func (n *naive) release(chunk string) (count int) {
	for _, i := range n.running(chunk) {
		item := &n.items[i]
		switch {
		case n.status == batch.PermanentlyFailed:
			item.Status, item.Reason = batch.PermanentlyFailed, n.reason
		case item.Attempts > 0:
			item.Status, item.DueAt = batch.Failed, time.Time{}
		default:
			item.Status = batch.Created
		}
		count++
	}
	if n.chunks[chunk].Status != batch.Done {
		n.chunks[chunk].Status = batch.Failed
	}
	return count
}

func (n *naive) complete(chunk string, ended []batch.Completion) (counted []bool) {
	for e := range ended {
		end := ended[e]
		is := slices.Contains(n.running(chunk), end.Index)
		counted = append(counted, is)
		if !is {
			continue
		}
		item := &n.items[end.Index]
		item.Result = &end.Result
		if !end.Failed && end.Result.ExitCode == 0 {
			item.Status = batch.Done
			continue
		}
		item.Attempts++
		item.FailedOn = append(item.FailedOn, item.Worker)
		item.DueAt = end.DueAt
		switch {
		case end.Permanent || item.Attempts >= n.attempts:
			item.Status, item.Reason = batch.PermanentlyFailed, end.Reason
		case n.status == batch.PermanentlyFailed:
			item.Status, item.Reason = batch.PermanentlyFailed, n.reason
		default:
			item.Status = batch.Failed
		}
	}
	return counted
}

func (n *naive) settle() {
	for id, c := range n.chunks {
		if c.Status == batch.InProgress && len(n.running(id)) == 0 {
			c.Status = batch.Done
		}
	}
	if !n.status.Over() && len(n.in(batch.Done, batch.PermanentlyFailed)) == len(n.items) {
		n.status, n.reason = batch.Done, ""
	}
}

func (n *naive) cancel(reason string) error {
	if n.status.Over() {
		return batch.ErrState
	}
	n.status, n.reason = batch.PermanentlyFailed, reason
	for _, i := range n.in(batch.Created, batch.Failed) {
		n.items[i].Status, n.items[i].Reason = batch.PermanentlyFailed, reason
	}
	return nil
}

func (n *naive) setReason(reason string) error {
	if n.status.Over() {
		return batch.ErrState
	}
	n.reason = reason
	return nil
}

func (n *naive) retry() int {
	failed := n.in(batch.PermanentlyFailed)
	for _, i := range failed {
		n.items[i].Status, n.items[i].Attempts, n.items[i].Reason = batch.Created, 0, ""
		n.status, n.reason = batch.InProgress, ""
	}
	return len(failed)
}

// waiting returns the items that wait and are due, and when more are.
func (n *naive) waiting(now time.Time) (found []int, next time.Time) {
	for _, i := range n.in(batch.Created, batch.Failed) {
		item := &n.items[i]
		if item.Status == batch.Created || !item.DueAt.After(now) {
			found = append(found, i)
		} else if next.IsZero() || item.DueAt.Before(next) {
			next = item.DueAt
		}
	}
	return found, next
}

// shown is what a store says about an item, as text, so that a difference is
// readable.
func shown(item *batch.Item) string {
	result := "none"
	if item.Result != nil {
		result = fmt.Sprintf("%+v", *item.Result)
	}
	reason := ""
	if item.Status == batch.PermanentlyFailed {
		reason = item.Reason
	}
	return fmt.Sprintf("%d %s %v: %v, chunk %q of %q, %d attempts, failed on %v, %s %q", item.Index, item.ID,
		item.Arguments, item.Status, item.Chunk, item.Worker, item.Attempts, lastWorkers(item.FailedOn), result, reason)
}

// lastWorkers are the last few, because stores may keep any number.
func lastWorkers(workers []string) []string { return workers[max(0, len(workers)-3):] }
