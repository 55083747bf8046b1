//go:build !linux

package workers

// machineMemory is not known here: set Options.RAM.
func machineMemory() int64 { return 0 }
