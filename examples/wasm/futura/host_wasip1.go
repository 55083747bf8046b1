package futura

import "unsafe"

//go:wasmimport futura step_get
func stepGet(name string) int64

//go:wasmimport futura step_put
func stepPut(name string, value unsafe.Pointer, size uint32)

//go:wasmimport futura read
func read(into unsafe.Pointer, size uint32) int64

//go:wasmimport futura state_get
func stateGet() int64

//go:wasmimport futura state_put
func statePut(state unsafe.Pointer, size uint32)

//go:wasmimport futura state_delete
func stateDelete()
