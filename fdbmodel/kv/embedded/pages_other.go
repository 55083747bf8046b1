//go:build !linux

package embedded

func mapSlab(int) []byte { return nil }

func forget([]byte) bool { return false }

func unmapSlab([]byte) {}
