//go:build !linux

package wasm

func hostileChild() {}
