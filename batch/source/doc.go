// Package source fetches functions of b7s: a manifest, the archive that it names, and
// the WASM modules in that. All of it comes from outside: its size, time and content
// are bounded, and it may come from public addresses over TLS only, unless the caller
// allows others.
package source

import (
	"context"
	"errors"
)

// Why a function is not installed. Further text says what is wrong.
var (
	// ErrURL is returned for a text that is no URL.
	ErrURL = errors.New("not a URL")
	// ErrSource is returned if a function can't be fetched, or is not what its manifest
	// says.
	ErrSource = errors.New("the function can't be fetched")
	// ErrPrivate is returned for an address from which functions must not be fetched.
	ErrPrivate = errors.New("a private, loopback or link-local address: only a node with --install-private " +
		"installs from those")
	// ErrPlain is returned for a source that anyone on the way could change, together
	// with its checksum.
	ErrPlain = errors.New("plain HTTP, where others could change the function and its checksum: use https; only a " +
		"node with --install-private installs without")
	// ErrArchive is returned for an archive that is not as it must be.
	ErrArchive = errors.New("the archive is refused")
)

// Meter accounts for what an installation takes, and may refuse it. Its errors are
// returned as they are.
type Meter interface {
	// Reserve takes n bytes of memory, and Return says that n of them are not used any
	// more.
	Reserve(ctx context.Context, n int64) error
	Return(ctx context.Context, n int64)
	// Work counts n bytes that are about to be computed on.
	Work(ctx context.Context, n int64) error
}

func orNone(m Meter) Meter {
	if m == nil {
		return unmetered{}
	}
	return m
}

type unmetered struct{}

func (unmetered) Reserve(context.Context, int64) error { return nil }
func (unmetered) Return(context.Context, int64)        {}
func (unmetered) Work(context.Context, int64) error    { return nil }
