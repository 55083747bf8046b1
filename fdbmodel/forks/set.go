package forks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// set gives steps the values of a request: those of kept steps are replaced, others are added behind
// them.
func (p *plan) set(r *Request, now int64) error {
	if len(r.Set) > MaxSet {
		return fmt.Errorf("%w: values for %d steps: at most %d", layout.ErrBadSpec, len(r.Set), MaxSet)
	}
	given := map[string]bool{}
	for i := range r.Set {
		v := &r.Set[i]
		switch {
		case step.CheckName(v.Step) != nil:
			return step.CheckName(v.Step)
		case given[v.Step]:
			return fmt.Errorf("%w: two values for step %s", layout.ErrBadSpec, v.Step)
		case v.Step == r.From.step:
			return fmt.Errorf("%w: step %s is to run, and is given a value: go on from a later step, or give it none",
				layout.ErrBadSpec, v.Step)
		}
		given[v.Step] = true
		if err := p.setOne(v, now); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) setOne(v *Value, now int64) error {
	at := slices.IndexFunc(p.steps, func(s step.Named) bool { return s.Name == v.Step })
	if isSleep(v.Step) || at >= 0 && p.steps[at].Wake != 0 {
		return fmt.Errorf("%w: step %s is a sleep, which returns nothing: it can't be given a value", layout.ErrBadSpec,
			v.Step)
	}
	content, err := compact(v)
	if err != nil {
		return err
	}
	one := step.Named{Name: v.Step, Record: step.Record{Number: nextNumber(p.steps), Attempt: 1,
		Codec: layout.CodecJSON, Size: int64(len(content)), StartedAt: now, At: now, Origin: step.OriginSet}}
	if at >= 0 {
		one.Number, one.Attempt = p.steps[at].Number, p.steps[at].Attempt
	}
	if len(content) <= steps.MaxInline {
		one.Value = content
	} else {
		// The content names the value, so that no other one is ever written there.
		sum := sha256.Sum256(content)
		ref := step.Ref(v.Step, layout.Token{Sequence: int64(binary.BigEndian.Uint64(sum[:8]) >> 1)})
		ref.Size, ref.Count = one.Size, layout.Pieces(one.Size)
		one.ValueRef, p.values = &ref, append(p.values, value{ref, content})
	}
	if err := one.Check(); err != nil {
		return fmt.Errorf("%w: step %s would be number %d of a future, which has at most %d", fdbmodel.ErrTooLarge, v.Step,
			one.Number, steps.Max)
	}
	if at >= 0 {
		p.steps[at] = one
	} else {
		p.steps = append(p.steps, one)
	}
	return nil
}

// isSleep reports whether a step of this name is a sleep, or the second one, and so on.
func isSleep(name string) bool {
	base, number, numbered := strings.Cut(name, "#")
	return base == "sleep" && (!numbered || strings.Trim(number, "0123456789") == "")
}

// digest tells the values of a request from others, in any order; it is empty for none.
func digest(values []Value) string {
	if len(values) == 0 {
		return ""
	}
	values = slices.Clone(values)
	slices.SortFunc(values, func(a, b Value) int { return strings.Compare(a.Step, b.Step) })
	h := sha256.New()
	for i := range values {
		content, err := compact(&values[i])
		if err != nil {
			content = values[i].JSON // which is refused
		}
		fmt.Fprintf(h, "%d:%s:%d:%s", len(values[i].Step), values[i].Step, len(content), content)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

func compact(v *Value) ([]byte, error) {
	if len(v.JSON) > layout.MaxPut {
		return nil, fmt.Errorf("%w: step %s: %d bytes, at most %d", fdbmodel.ErrTooLarge, v.Step, len(v.JSON), layout.MaxPut)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v.JSON); err != nil || !utf8.Valid(v.JSON) {
		return nil, fmt.Errorf("%w: the value for step %s is not JSON in UTF-8: quote a text, as '\"paid\"'",
			layout.ErrBadSpec, v.Step)
	}
	return b.Bytes(), nil
}
