package wasm

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/workers"
)

// Invocation is one call of a function.
type Invocation struct {
	// CID names the module. One CID always stands for the same bytes; that they
	// match is for the caller to check.
	CID string
	// Module returns the bytes of the module. It is called when no loaded copy is
	// at hand, possibly by several calls at a time.
	Module func(ctx context.Context) ([]byte, error)
	// Method is the exported function to call. It takes no parameters and
	// returns nothing, or one i32 that is taken as the exit code. In a module
	// that exports "_initialize" or "futura_snapshot" these are called first, once for
	// many calls with the second. Defaults to "_start".
	Method string
	// Args are the arguments after the program's name.
	Args []string
	// Env is the whole environment of the function.
	Env map[string]string
	// Stdin is what the function reads.
	Stdin []byte
	// Input, if not nil, returns what the function reads instead of Stdin, as it
	// reads it. It is called again if the function is run by another process. An error
	// of its Read, which should end with ctx, ends the function.
	Input func(ctx context.Context) io.Reader
	// Output, if not nil, takes the standard output of a function that writes more than
	// 1 MiB, or than Config.MaxOutput if that is less, from its beginning, as it is written.
	// An error of its Write ends the function. Config.MaxOutput bounds it only with OutputBound.
	Output      io.Writer
	OutputBound bool
	// Host answers what the function asks by what it imports from "futura". An error of it ends
	// the function. Defaults to none: a function that asks then fails.
	Host workers.ModuleHost
	// MemoryLimit is the memory that the instance may have, in bytes. Defaults
	// to Config.MemoryLimit, and may be above it.
	MemoryLimit int64
	// MaxMemory is the most that MemoryLimit or its default may be. Defaults to no
	// bound.
	MaxMemory int64
	// Timeout is how long the function may run; loading the module is not
	// counted. Negative for no limit. Defaults to Config.DefaultTimeout.
	Timeout time.Duration
}

// Outcome is what a call left behind. It is filled as far as it is known when
// the call failed too.
type Outcome struct {
	// Stdout is what the function wrote to its standard output. Of a call that
	// failed as "too_large", or whose Output took it, the first 64 KiB are kept.
	Stdout []byte
	// Streamed is how many bytes Output has taken, 0 if Stdout has all.
	Streamed int64
	// Stderr is the end of what the function wrote to its standard error.
	Stderr []byte
	// StderrTruncated says that Stderr lacks its beginning.
	StderrTruncated bool
	// ExitCode is the exit code of a function that ended by itself, else -1.
	ExitCode int
	// Duration is how long the function ran.
	Duration time.Duration
	// PeakMemory is the most memory that the instance had, in bytes: 0 if its process died, or
	// did not say in time.
	PeakMemory int64
	// CPUUser and CPUSys are the processor time of the process that ran the function,
	// meanwhile. 0 for one that ran in this process.
	CPUUser, CPUSys time.Duration
}

const defaultMethod = "_start"

// call is an Invocation as an engine takes it: checked, and with every default
// filled in.
type call struct {
	program     string
	method      string
	args        []string
	env         []string // name and value by turns, sorted by name
	stdin       []byte
	memoryLimit uint64
	timeout     time.Duration // 0 for no limit
	input       func(context.Context) io.Reader
	output      io.Writer
	host        workers.ModuleHost
}

func (c *Config) newCall(inv *Invocation) (*call, error) {
	made := &call{
		program: inv.CID, method: inv.Method, args: inv.Args, stdin: inv.Stdin,
		memoryLimit: uint64(c.MemoryLimit), timeout: inv.Timeout, input: inv.Input, output: inv.Output,
		host: inv.Host,
	}
	if inv.CID == "" {
		return nil, failf(KindError, "the invocation names no module")
	}
	made.method = cmp.Or(made.method, defaultMethod)
	made.timeout = cmp.Or(made.timeout, c.DefaultTimeout)
	made.timeout = max(made.timeout, 0)
	if inv.MemoryLimit > 0 {
		made.memoryLimit = uint64(min(inv.MemoryLimit, maxLinearMemory))
	}
	if inv.MaxMemory > 0 {
		made.memoryLimit = min(made.memoryLimit, uint64(inv.MaxMemory))
	}
	if inv.OutputBound && inv.Output != nil {
		made.output = &boundOutput{to: inv.Output, left: c.MaxOutput, most: c.MaxOutput}
	}
	size := int64(len(inv.Stdin)) + textSize(inv.CID) + textSize(inv.Method)
	for _, argument := range inv.Args {
		size += textSize(argument)
		if strings.IndexByte(argument, 0) >= 0 {
			return nil, failf(KindError, "argument %.64q contains a zero byte", argument)
		}
	}
	for name, value := range inv.Env {
		size += textSize(name) + textSize(value)
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(value, 0) >= 0 {
			return nil, failf(KindError, "environment variable %.64q: "+
				"a name is needed, without =, and no part may have a zero byte", name)
		}
	}
	if size > c.MaxInput {
		return nil, failf(KindTooLarge, "arguments, environment and input are %d bytes, the limit is %d; "+
			"pass large input in parts", size, c.MaxInput)
	}
	made.env = sortedPairs(inv.Env)
	return made, nil
}

// boundOutput fails beyond a bound.
type boundOutput struct {
	to         io.Writer
	left, most int64
}

// Write implements io.Writer.
func (b *boundOutput) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, failf(KindTooLarge, overflowMessage, b.most)
	}
	return b.to.Write(p)
}

// textSize is what a string counts towards the limit of the input: its bytes
// and what it takes to keep them.
func textSize(text string) int64 { return int64(len(text)) + 16 }

func sortedPairs(env map[string]string) []string {
	if len(env) == 0 {
		return nil
	}
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	pairs := make([]string, 0, 2*len(names))
	for _, name := range names {
		pairs = append(pairs, name, env[name])
	}
	return pairs
}
