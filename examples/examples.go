// Package examples holds runnable programs and the sources of WASM functions.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed wasm/countlines/main.go wasm/countlines/summary/summary.go
var countlines embed.FS

// Countlines returns the sources of the function countlines, as they lie below
// this directory.
func Countlines() fs.FS { return countlines }
