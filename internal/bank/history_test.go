package bank

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Kinds of entries of a journal.
const (
	entryBegin  = "begin"  // of a payment
	entryPaid   = "paid"   // it was acknowledged, or refused
	entryCame   = "came"   // what it has sent was acknowledged
	entryRead   = "read"   // of an account
	entrySurvey = "survey" // of all accounts
	entryAgain  = "again"  // a worker that was declared dead is a member again
)

// entry is a line of a journal, which clients write outside of the store.
type entry struct {
	Do      string
	Name    string  `json:",omitempty"`
	Payment payment `json:",omitzero"`
	Paid    paid    `json:",omitzero"`
	Survey  survey  `json:",omitzero"`
	Account int     `json:",omitempty"`
	Seen    seen    `json:",omitzero"`
	Began   int64   `json:",omitempty"` // by the monotonic clock of the machine, which all processes share
	At      int64
}

// tale is what is known of one payment.
type tale struct {
	payment
	began, paidAt, cameAt int64 // 0 for what did not happen
	paid                  paid
	came                  seen
}

// look is a read of an account that clients made.
type look struct {
	account   int
	seen      seen
	began, at int64
}

// history is what clients did, and were told.
type history struct {
	payments map[string]*tale
	looks    []look
	problems []string
	surveys  int
	again    int
}

// readHistory reads a journal. Its last line may lack its end.
func readHistory(file string) (*history, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	h := &history{payments: map[string]*tale{}}
	for line := range strings.Lines(string(text)) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		if err := h.add(&e); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
	}
	return h, nil
}

func (h *history) add(e *entry) error {
	p := h.payments[e.Name]
	switch e.Do {
	case entryBegin:
		if p != nil {
			return errors.New("it begins twice")
		}
		h.payments[e.Name] = &tale{payment: e.Payment, began: e.At}
		return nil
	case entryRead:
		h.looks = append(h.looks, look{e.Account, e.Seen, e.Began, e.At})
		return nil
	case entrySurvey:
		h.surveys++
		if e.Survey.Problem != "" {
			h.problems = append(h.problems, e.Survey.Problem)
		}
		for n, s := range e.Survey.Accounts {
			h.looks = append(h.looks, look{n, s, e.Began, e.At})
		}
		return nil
	case entryAgain:
		h.again++
		return nil
	}
	if p == nil {
		return errors.New("it never began")
	}
	switch e.Do {
	case entryPaid:
		p.paid, p.paidAt = e.Paid, e.At
		if !p.Sent {
			p.came, p.cameAt = e.Paid.To, e.At
		}
	case entryCame:
		p.came, p.cameAt = e.Seen, e.At
	default:
		return errors.New("it is of no kind")
	}
	return nil
}

// over reports whether nothing of the payment is open.
func (p *tale) over() bool {
	return p.paidAt > 0 && (p.cameAt > 0 || p.paid.Refused)
}
