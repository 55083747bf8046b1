// Package futura has the steps of a WASM function that is written in Go, and the state of the actor that it is
// called as a method of. Copy it, or import it.
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
	if value, recorded := found(stepGet(name)); recorded {
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

// State returns the state of the actor, and false if it has none.
func State() (state []byte, exists bool) { return found(stateGet()) }

// SetState has the state of the actor be another one, of up to 64 KiB, once the function has ended with a result. A
// step that changes it can't be recorded: that ends the function, as does a change where the function is no method of
// an actor.
func SetState(state []byte) { statePut(unsafe.Pointer(unsafe.SliceData(state)), uint32(len(state))) }

// DeleteState has the actor have no state once the function has ended with a result.
func DeleteState() { stateDelete() }

// found reads what was asked for, if there is something.
func found(size int64) ([]byte, bool) {
	if size < 0 {
		return nil, false
	}
	value := make([]byte, size)
	read(unsafe.Pointer(unsafe.SliceData(value)), uint32(size))
	return value, true
}
