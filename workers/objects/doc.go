// Package objects stores immutable bytes under the hash of their content: in
// memory under one budget, on disk under another.
//
// A Store belongs to one process and keeps nothing beyond it: its memory and its
// files vanish with the process, however it ends. What is to outlive it, Save writes to
// files that Restore finds. Nothing that was put is dropped
// before it is deleted. What doesn't fit is refused with ErrFull.
//
// The content is divided into pieces of PieceSize bytes. The hash of an object is
// a hash over its size and the hashes of its pieces, so that each piece can be
// verified as it arrives, in any order and from any source. Package peer serves a
// store to other processes.
package objects
