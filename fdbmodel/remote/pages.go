package remote

import (
	"encoding/binary"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// rangeRead is a range that the server reads page by page, so that it holds
// little of it at a time.
type rangeRead struct {
	reader  kv.Reader
	rest    kv.Range
	reverse bool
	limit   int // rows still wanted, 0 for all
	rows    int // of the page that was asked
	pending kv.Pending[kv.Page]
}

const (
	// firstPage is how many rows are asked for before their size is known.
	firstPage = 128
	// maxPage bounds the rows of the later pages.
	maxPage = 4096
	// pageSize is what a later page should have, in bytes.
	pageSize = 1 << 20
)

func newRangeRead(reader kv.Reader, r kv.Range, limit int, reverse bool) *rangeRead {
	q := &rangeRead{reader: reader, rest: r, limit: limit, reverse: reverse}
	q.ask(firstPage)
	return q
}

// ask asks for the next page.
func (q *rangeRead) ask(rows int) {
	q.rows = rows
	if q.limit > 0 {
		q.rows = min(rows, q.limit)
	}
	q.pending = q.reader.GetRange(q.rest, kv.RangeOptions{Limit: q.rows, Reverse: q.reverse})
}

// single tells whether the page that was asked is all.
func (q *rangeRead) single() bool { return q.limit > 0 && q.limit == q.rows }

// advance asks for the page behind page, and returns false if there is none.
func (q *rangeRead) advance(page kv.Page) bool {
	if !page.More || q.single() {
		return false
	}
	last := page.Items[len(page.Items)-1].Key
	if q.reverse {
		q.rest.End = last
	} else {
		q.rest.Begin = kv.After(last)
	}
	if q.limit > 0 {
		q.limit -= len(page.Items)
	}
	size := 0
	for _, item := range page.Items {
		size += len(item.Key) + len(item.Value)
	}
	q.ask(max(1, min(maxPage, pageSize*len(page.Items)/max(size, 1))))
	return true
}

// askRange asks for a range. One of several pages is answered before the
// transaction goes on, as its later pages must not see later writes.
func (t *work) askRange(number uint64, q *rangeRead) {
	t.asked = append(t.asked, asked{number: number, page: q})
	if !q.single() {
		t.answerAsked()
	}
}

// answerRange answers in as many parts as it takes.
func (t *work) answerRange(number uint64, q *rangeRead) {
	for {
		page, err := q.pending.Wait(t.ctx)
		if err != nil {
			t.answer(number, answerError, err)
			return
		}
		more := page.More
		again := q.advance(page)
		t.answerRows(number, page.Items, !again, more)
		if !again {
			return
		}
	}
}

// answerRows sends rows in parts that fit a frame.
func (t *work) answerRows(number uint64, rows []kv.KeyValue, last, more bool) {
	for {
		n, size := 0, 0
		for n < len(rows) && size < chunkSize {
			size += len(rows[n].Key) + len(rows[n].Value)
			n++
		}
		kind := answerRows
		if last && n == len(rows) {
			kind = answerLastRows
		}
		t.answer(number, kind, nil)
		if kind == answerLastRows {
			t.answers = append(t.answers, moreFlag(more))
		}
		t.answers = binary.AppendUvarint(t.answers, uint64(n))
		for _, row := range rows[:n] {
			t.answers = appendBytes(appendBytes(t.answers, row.Key), row.Value)
		}
		rows = rows[n:]
		t.flushIfLong()
		if len(rows) == 0 {
			return
		}
	}
}

func moreFlag(more bool) byte {
	if more {
		return 1
	}
	return 0
}
