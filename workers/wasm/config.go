package wasm

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"time"
)

// Isolation says where functions run.
type Isolation string

const (
	// IsolationProcess runs functions in child processes, one call at a time in
	// each. It needs a Unix system and ChildMain at the start of main.
	IsolationProcess Isolation = "process"
	// IsolationInProcess runs functions in the process itself. Code is compiled
	// with a check in every loop and function, which makes tight loops tens of
	// times slower. Compiling can't be interrupted: a caller whose context ends
	// returns at once while the compiler runs to its end.
	IsolationInProcess Isolation = "inprocess"
)

// Config sets up an Executor. The zero value works.
type Config struct {
	// CacheDir keeps compiled code between runs of the program. It is created if
	// missing. New refuses one that other users own or can write, because they
	// could run code as the program, which is why it should not be one that comes
	// from elsewhere either. Defaults to none: a temporary directory that Close
	// removes (IsolationProcess), or memory (IsolationInProcess).
	CacheDir string
	// Isolation says where functions run. Defaults to IsolationProcess where that
	// works, else IsolationInProcess with a warning in the log.
	Isolation Isolation
	// PoolSize is how many calls run at a time; further ones wait. With
	// IsolationProcess it is the number of processes. Defaults to GOMAXPROCS.
	PoolSize int
	// IdleTimeout is how long a process without a call is kept; the next call
	// starts another. Negative for no limit. Defaults to 1 minute.
	IdleTimeout time.Duration
	// LoadedModules is how many compiled modules stay loaded, per process.
	// Defaults to 16.
	LoadedModules int
	// MemoryLimit is the memory that an instance may have, in bytes, at most
	// 4 GiB. Defaults to 256 MiB.
	MemoryLimit int64
	// MaxModuleSize bounds a module, in bytes. Defaults to 64 MiB.
	MaxModuleSize int64
	// MaxInput bounds arguments, environment and standard input of one call
	// together, in bytes. Defaults to 64 MiB.
	MaxInput int64
	// MaxOutput bounds standard output, in bytes. Defaults to 64 MiB.
	MaxOutput int64
	// StderrTail is how much of the end of standard error is kept, in bytes.
	// Defaults to 64 KiB.
	StderrTail int64
	// DefaultTimeout is the time that a call may run when the invocation sets
	// none; negative for no limit. Defaults to 5 minutes.
	DefaultTimeout time.Duration
	// LoadTimeout is the time that fetching a module and loading its code may take,
	// each. With IsolationInProcess compiling is a part of loading. Defaults to 1
	// minute.
	LoadTimeout time.Duration
	// Compilers is how many modules are compiled at a time, with IsolationProcess:
	// as many for Check and as many for Run, each in a process of its own. One that
	// takes more than 5 s leaves its place to the next, if fewer than Compilers
	// others have done so. Waiting counts towards no limit but that of the caller's
	// context. Defaults to 2.
	Compilers int
	// CompileTimeout is the processor time that compiling a module may take, with
	// IsolationProcess; a module that takes longer is "unloadable". Defaults to 1
	// minute.
	CompileTimeout time.Duration
	// CompileMemory is the memory that compiling a module may take, in bytes, on
	// Linux with IsolationProcess; a module that needs more, or for which the machine
	// has no more, is "unloadable" and is not tried again for a minute. Defaults to
	// 2 GiB.
	CompileMemory int64
	// Logger receives warnings. Defaults to slog.Default().
	Logger *slog.Logger
}

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20

	// maxLinearMemory is what 32-bit addresses reach.
	maxLinearMemory = 4 << 30
	// maxKeptOnOverflow is how much of standard output is kept of a call that
	// wrote more than it may.
	maxKeptOnOverflow = 64 * kibibyte
	// maxMessage bounds the message of an Error.
	maxMessage = 8 * kibibyte
)

func (c Config) withDefaults() (Config, error) {
	for _, size := range []struct {
		name     string
		value    *int64
		fallback int64
		most     int64
	}{
		{"MemoryLimit", &c.MemoryLimit, 256 * mebibyte, maxLinearMemory},
		{"MaxModuleSize", &c.MaxModuleSize, 64 * mebibyte, 1 << 30},
		{"MaxInput", &c.MaxInput, 64 * mebibyte, 1 << 30},
		{"MaxOutput", &c.MaxOutput, 64 * mebibyte, 1 << 30},
		{"StderrTail", &c.StderrTail, 64 * kibibyte, 1 << 30},
		{"CompileMemory", &c.CompileMemory, 2 << 30, 1 << 40},
	} {
		if *size.value == 0 {
			*size.value = size.fallback
		}
		if *size.value < 0 || *size.value > size.most {
			return c, fmt.Errorf("%w: %s is %d: use 1 to %d bytes", ErrBadConfig, size.name, *size.value, size.most)
		}
	}
	if c.PoolSize <= 0 {
		c.PoolSize = runtime.GOMAXPROCS(0)
	}
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	if c.LoadedModules <= 0 {
		c.LoadedModules = 16
	}
	c.DefaultTimeout = cmp.Or(c.DefaultTimeout, 5*time.Minute)
	if c.LoadTimeout <= 0 {
		c.LoadTimeout = time.Minute
	}
	if c.Compilers <= 0 {
		c.Compilers = 2
	}
	if c.CompileTimeout <= 0 {
		c.CompileTimeout = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	switch c.Isolation {
	case "", IsolationProcess, IsolationInProcess:
		return c, nil
	}
	return c, fmt.Errorf("%w: isolation %q is unknown: use %q or %q", ErrBadConfig, c.Isolation, IsolationProcess,
		IsolationInProcess)
}
