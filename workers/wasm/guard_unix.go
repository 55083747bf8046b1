//go:build unix && !linux

package wasm

// memoryGuard does nothing on this system.
type memoryGuard struct{}

func (memoryGuard) allow(uint64, limits) {}

func limitMemory(uint64) error { return nil }

func preferAsVictim() {}

func closeInherited() {}
