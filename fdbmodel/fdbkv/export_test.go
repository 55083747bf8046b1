//go:build fdb

package fdbkv

import "github.com/apple/foundationdb/bindings/go/src/fdb"

// FromNative opens a cluster without asking whether it answers.
func FromNative(native fdb.Database) *Database { return newDatabase(native) }
