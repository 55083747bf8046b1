// Package system has the tests of the whole: clients, workers and WASM modules
// on a store, as an application puts them together, and processes that are
// killed. It holds no code.
package system
