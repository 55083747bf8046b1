//go:build !wasip1

package futura

import "unsafe"

// Natively each step runs, nothing records it, and no actor has a state.

func stepGet(string) int64 { return -1 }

func stepPut(string, unsafe.Pointer, uint32) {}

func read(unsafe.Pointer, uint32) int64 { return 0 }

func stateGet() int64 { return -1 }

func statePut(unsafe.Pointer, uint32) {}

func stateDelete() {}
