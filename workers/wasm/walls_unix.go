//go:build unix && !linux

package wasm

import "runtime"

// raiseWalls raises none: this system has none of those that Linux has.
func raiseWalls() (standing, missing []string) { return nil, []string{"this is " + runtime.GOOS} }
