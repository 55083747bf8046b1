// Package wasmbench measures what it costs to run a WebAssembly function so that
// it can be stopped. It runs the same small function by an executor of package
// wasm, by wazero alone with a check in every loop, and by wazero alone without
// any means to stop it, each call in a fresh instance.
package wasmbench
