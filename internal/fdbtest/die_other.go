//go:build fdb && !linux

package fdbtest

import "os/exec"

// dieWithParent does nothing on systems that can't do it.
func dieWithParent(*exec.Cmd) {}
