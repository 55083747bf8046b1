package forks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Point says where a fork goes on. The zero value is the step that failed.
type Point struct {
	step  string
	start bool
	word  string // that stands for it in a text, and might be the name of a step
}

// Words that stand for points, and what begins the name of a step with such a name.
const (
	failedWord = "failed"
	startWord  = "start"
	stepPrefix = "step:"
)

// FromStep has a fork go on at a step that its source has recorded: that one and those recorded after
// it run again.
func FromStep(name string) Point { return Point{step: name} }

// FromFailed has a fork go on behind all steps that its source has recorded, with the step that
// failed: what failed is not recorded. It is for sources that have failed and have recorded steps.
func FromFailed() Point { return Point{} }

// FromStart has a fork begin anew: all of it runs again.
func FromStart() Point { return Point{start: true} }

// ParsePoint reads a point: failed, which nothing stands for too, start, the name of a step, or step:
// and a name. It returns ErrBadName.
func ParsePoint(text string) (Point, error) {
	switch text {
	case "":
		return FromFailed(), nil
	case failedWord:
		return Point{word: failedWord}, nil
	case startWord:
		return Point{start: true, word: startWord}, nil
	}
	name := strings.TrimPrefix(text, stepPrefix)
	return FromStep(name), step.CheckName(name)
}

// String returns the text that ParsePoint reads.
func (p Point) String() string {
	switch {
	case p.start:
		return startWord
	case p.step == "":
		return failedWord
	case p.step == failedWord || p.step == startWord || strings.HasPrefix(p.step, stepPrefix):
		return stepPrefix + p.step
	default:
		return p.step
	}
}

// kept returns the first steps of a future, those that a fork from p copies. all are in the order of
// their numbers.
func (p Point) kept(row *layout.Row, all []step.Named) ([]step.Named, error) {
	find := func(name string) int { return slices.IndexFunc(all, func(s step.Named) bool { return s.Name == name }) }
	if p.word != "" && find(p.word) >= 0 {
		return nil, fmt.Errorf("%w: %s of future %s: name the step as %s%s, or a step before or behind it", ErrAmbiguous,
			p.word, row.ID, stepPrefix, p.word)
	}
	switch {
	case p.start:
		return nil, nil
	case p.step == "":
		return all, failedIn(row, len(all))
	}
	at := find(p.step)
	if at < 0 {
		return nil, fmt.Errorf("%w: %q of future %s: it has %s", ErrNoStep, p.step, row.ID, namesOf(all))
	}
	return all[:at], nil
}

// failedIn returns ErrNothingFailed unless a future has failed behind some of its steps.
func failedIn(row *layout.Row, steps int) error {
	ending := row.Ending()
	why := ""
	switch {
	case ending.Cancelled():
		why = "it was cancelled"
	case row.State() != layout.Failed:
		why = "it is " + row.State().String()
	case steps == 0:
		return fmt.Errorf("%w: future %s has failed and has recorded no step: all of it would run again; "+
			"if that is meant, fork it from \"start\"", ErrNothingFailed, row.ID)
	default:
		return nil
	}
	return fmt.Errorf("%w: future %s: %s; name a step, or \"start\"", ErrNothingFailed, row.ID, why)
}

// maxNamed is how many steps an error names.
const maxNamed = 10

func namesOf(all []step.Named) string {
	if len(all) == 0 {
		return "recorded none"
	}
	var names []string
	for i := range all[:min(len(all), maxNamed)] {
		names = append(names, fmt.Sprintf("%.80q", all[i].Name))
	}
	if len(all) > maxNamed {
		names = append(names, fmt.Sprintf("and %d more", len(all)-maxNamed))
	}
	return strings.Join(names, ", ") + "; a step that failed is not recorded: to go on with that one, fork it from failed"
}

// agrees reports whether a fork that exists went on there.
func (p Point) agrees(of *layout.Fork) bool {
	return p.step == of.Step && (p.step != "" || p.start == (of.Copied == 0))
}

// Text says where a fork goes on, or went on.
func Text(of *layout.Fork) string {
	where := "from the start"
	switch {
	case of.Step != "":
		where = fmt.Sprintf("at step %s", of.Step)
	case of.Copied == 1:
		where = fmt.Sprintf("after step %s", of.After)
	case of.Copied > 0:
		where = fmt.Sprintf("after step %s, the last of %d", of.After, of.Copied)
	}
	if of.Set > 0 {
		where += fmt.Sprintf(", with %d given", of.Set)
	}
	return where
}

// nextNumber is the number of a step behind others.
func nextNumber(all []step.Named) int {
	last := 0
	for i := range all {
		last = max(last, all[i].Number)
	}
	return last + 1
}
