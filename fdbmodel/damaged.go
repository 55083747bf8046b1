package fdbmodel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// damagedLanes is the error of a transaction that changes lanes of which a record can't be
// read: their own, or that of their kind. It is one of those for which layout.IsUnreadable
// holds.
type damagedLanes struct {
	lanes []layout.Lane
	err   error // of the first one
}

func (d *damagedLanes) Error() string { return fmt.Sprintf("lane %s: %v", d.lanes[0], d.err) }
func (d *damagedLanes) Unwrap() error { return d.err }

// avoidance are lanes that a transaction over futures of many leaves alone.
type avoidance []layout.Lane

// maxAvoided is how many lanes such a transaction leaves alone at most.
const maxAvoided = 1000

// aroundDamage calls run until it fails for another reason than lanes that can't be read,
// each time with those that it met before: it must not change their futures, so that the
// rest goes on.
func aroundDamage(run func(avoid avoidance) error) error {
	var avoid avoidance
	for {
		err := run(avoid)
		var damaged *damagedLanes
		if !errors.As(err, &damaged) || len(avoid) >= maxAvoided {
			return err
		}
		before := len(avoid)
		for _, lane := range damaged.lanes {
			if !avoid.has(lane) {
				avoid = append(avoid, lane)
			}
		}
		if len(avoid) == before {
			return err
		}
	}
}

func (a avoidance) has(lane layout.Lane) bool { return slices.Contains(a, lane) }

// of reports whether the lane of a future is among them.
func (a avoidance) of(row *layout.Row) bool { return row.Spec != nil && a.has(row.Spec.Lane) }
