// Package kvtest is the conformance suite of package kv: what every store must
// do, as tests, and random programs whose results two stores must agree on.
//
// A driver joins with one test:
//
//	func TestConformance(t *testing.T) {
//		kvtest.Run(t, kvtest.Options{New: open})
//	}
//
// Stores may differ in durability and speed, never in isolation. Whatever a
// case expects, FoundationDB does.
package kvtest
