// Package faultkv wraps a store and injects the faults that a distributed store
// has: conflicts, transactions that are too old, times of no service, and
// commits whose result is unknown, which were written, or were not, or will be
// later.
//
// Faults are drawn from a seed, so that a program of one goroutine meets the
// same faults again; [Database.FailNext] injects one particular fault. Only
// transactions that write can fail at their commit, as in FoundationDB.
//
// A late commit is held back, keeping its read version, and is tried on the wrapped
// store when the given number of further operations was asked of any transaction, or
// by [Database.Flush]. It conflicts then like any other commit, in which case it never
// happened.
package faultkv
