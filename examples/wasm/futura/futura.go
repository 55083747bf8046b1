// Package futura has the steps of a WASM function that is written in Go: copy it, or import it.
package futura

import (
	"fmt"
	"unsafe"
)

// within is the name of the step that runs.
var within string

// Step runs a part of the function and records what it returned, so that no later attempt of the future runs it
// again: that gets the recorded value. It returns once the value is durable, and ends the function if that can't be.
// An error of run is returned, and nothing is recorded. The second step with a name in an attempt is NAME#2, and so on.
// A step can't contain another one.
func Step(name string, run func() ([]byte, error)) ([]byte, error) {
	if within != "" {
		return nil, fmt.Errorf("step %s in step %s: return from that one first", name, within)
	}
	if size := stepGet(name); size >= 0 {
		value := make([]byte, size)
		read(unsafe.Pointer(unsafe.SliceData(value)), uint32(size))
		return value, nil
	}
	within = name
	defer func() { within = "" }()
	value, err := run()
	if err != nil {
		return nil, err
	}
	stepPut(name, unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)))
	return value, nil
}
