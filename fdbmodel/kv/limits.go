package kv

import "time"

// Limits of every store. They are FoundationDB's.
const (
	// MaxKeySize is the longest key, in bytes: ErrKeyTooLarge beyond it.
	MaxKeySize = 10_000
	// MaxValueSize is the longest value, in bytes: ErrValueTooLarge beyond it.
	MaxValueSize = 100_000
	// MaxTxSize bounds a transaction's keys and values written plus all its
	// read and write conflict ranges, in bytes: ErrTxTooLarge beyond it. Values
	// read do not count.
	MaxTxSize = 10_000_000
	// TxLifetime is how long a transaction may run after its first read. Its
	// later reads and its commit fail with ErrTooOld.
	TxLifetime = 5 * time.Second
	// MaxWatches is the maximum number of watches that one Database may have
	// open: ErrTooManyWatches beyond it.
	MaxWatches = 10_000
	// MaxTag is the longest Tag of Options, in bytes.
	MaxTag = 16
	// StampSize is the length of a Stamp in bytes.
	StampSize = 10
	// NoVersion is the version of a transaction that wrote nothing.
	NoVersion Version = -1
)
