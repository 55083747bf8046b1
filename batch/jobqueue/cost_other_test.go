//go:build !unix

package jobqueue_test

import "time"

var begun = time.Now()

// processorTime is wall time where nothing better is known.
func processorTime() time.Duration { return time.Since(begun) }
