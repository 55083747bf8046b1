package fdbmodel

import (
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// skippedLanes are unreadable lanes that a transaction leaves alone.
type skippedLanes []layout.Lane

// maxSkipped is the maximum number of lanes that a transaction leaves alone.
const maxSkipped = 1000

// skipUnreadable calls run with the unreadable lanes that it has met so far, until it meets
// no further ones. run must not change futures of these lanes.
func skipUnreadable(run func(skip skippedLanes) error) error {
	var skip skippedLanes
	for {
		err := run(skip)
		var damaged *lane.DamagedError
		if !errors.As(err, &damaged) || len(skip) >= maxSkipped {
			return err
		}
		before := len(skip)
		for _, l := range damaged.Lanes {
			if !slices.Contains(skip, l) {
				skip = append(skip, l)
			}
		}
		if len(skip) == before {
			return err
		}
	}
}
