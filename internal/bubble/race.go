//go:build race

package bubble

// raced reports whether the race detector watches.
const raced = true
