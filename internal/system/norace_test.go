//go:build !race

package system

// raced is whether the race detector runs.
const raced = false
