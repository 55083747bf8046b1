package fdbmodel

import (
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/layout"
)

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
		var damaged *lane.DamagedError
		if !errors.As(err, &damaged) || len(avoid) >= maxAvoided {
			return err
		}
		before := len(avoid)
		for _, l := range damaged.Lanes {
			if !avoid.has(l) {
				avoid = append(avoid, l)
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
