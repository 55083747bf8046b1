package remote

import (
	"encoding/binary"
	"errors"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	// pageBytes and pageRows bound a page, which ends with the row that reaches
	// one of them. A store that ignores the bytes keeps to the rows.
	pageBytes = 16 << 10
	pageRows  = 128
	// flushBytes is the size from which on answers are sent.
	flushBytes = 16 << 10
)

// beginReads waits for the memory to read into, and answers the question itself
// if it gets none.
func (t *work) beginReads(number uint64) bool {
	if t.reading {
		return true
	}
	if t.reading = t.peer.tryReads(); t.reading {
		return true
	}
	t.input.pass()
	if err := t.peer.beginReads(t.ctx); err != nil {
		t.answer(number, answerError, err)
		return false
	}
	t.reading = true
	return true
}

// get answers with the value of a key.
func (t *work) get(number uint64, reader kv.Reader, key []byte) {
	if !t.beginReads(number) {
		return
	}
	value, err := reader.Get(key).Wait(t.ctx)
	kind := answerValue
	if value == nil {
		kind = answerAbsent
	}
	if t.answer(number, kind, err) && value != nil {
		t.answers = appendBytes(t.answers, value)
	}
}

// getRange answers with the rows of a range, page by page, all of them before the
// transaction goes on: later pages must not see later writes. Bounds of left hold for
// all pages together.
func (t *work) getRange(number uint64, reader kv.Reader, r kv.Range, left kv.RangeOptions) {
	if left.Limit == 0 || left.Limit > pageRows {
		t.input.pass() // it may take several pages
	}
	for t.beginReads(number) {
		page, err := reader.GetRange(r, onePage(left)).Wait(t.ctx)
		if err == nil && page.More && len(page.Items) == 0 {
			err = errEmptyPage
		}
		if err != nil {
			t.answer(number, answerError, err)
			return
		}
		size := sizeOf(page)
		last := !page.More || len(page.Items) == left.Limit || left.Bytes > 0 && size >= left.Bytes
		t.answerRows(number, page, last)
		t.flushIfLong()
		if last {
			return
		}
		left.Limit -= min(left.Limit, len(page.Items))
		left.Bytes -= min(left.Bytes, size)
		end := page.Items[len(page.Items)-1].Key
		if left.Reverse {
			r.End = end
		} else {
			r.Begin = kv.After(end)
		}
		t.charge(2 * len(end))
	}
}

// errEmptyPage is the answer to a read of a store that breaks the contract of kv.Page.
var errEmptyPage = errors.New("remote: the store gave a page without rows and said that more follow")

// sizeOf returns the bytes of a page's keys and values.
func sizeOf(p kv.Page) (bytes int) {
	for _, item := range p.Items {
		bytes += len(item.Key) + len(item.Value)
	}
	return bytes
}

// onePage bounds what is left to read by what is answered at once.
func onePage(left kv.RangeOptions) kv.RangeOptions {
	within := func(bound, most int) int {
		if bound > 0 {
			return min(bound, most)
		}
		return most
	}
	left.Limit, left.Bytes = within(left.Limit, pageRows), within(left.Bytes, pageBytes)
	return left
}

func (t *work) answerRows(number uint64, page kv.Page, last bool) {
	kind := answerRows
	if last {
		kind = answerLastRows
	}
	t.answer(number, kind, nil)
	if last {
		more := byte(0)
		if page.More {
			more = 1
		}
		t.answers = append(t.answers, more)
	}
	t.answers = binary.AppendUvarint(t.answers, uint64(len(page.Items)))
	for _, row := range page.Items {
		t.answers = appendBytes(appendBytes(t.answers, row.Key), row.Value)
	}
}

func (t *work) flushIfLong() {
	if len(t.answers) >= flushBytes {
		t.flush()
	}
}

// flush sends the answers that there are, and ends the reads. Answers to reads
// found room before they were read.
func (t *work) flush() {
	var buffer [binary.MaxVarintLen64]byte
	head := binary.AppendUvarint(buffer[:0], t.number)
	switch {
	case t.reading:
		t.reading = false
		_ = t.peer.out.push(frameAnswers, head, t.answers, t.peer.endReads)
	case len(t.answers) > 0:
		_ = t.peer.out.send(frameAnswers, head, t.answers)
	}
	t.answers = t.answers[:0]
	if cap(t.answers) > keptAnswers {
		t.answers = nil
	}
}

// endReads ends the reads before a commit. A few answers travel with the commit's.
func (t *work) endReads() {
	if !t.reading || len(t.answers) > keptAnswers {
		t.flush()
		return
	}
	t.reading = false
	t.peer.endReads()
}

// keptAnswers is the largest buffer for answers that an open transaction keeps,
// in bytes.
const keptAnswers = 4 << 10
