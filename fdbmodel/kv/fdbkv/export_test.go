//go:build fdb

package fdbkv

import "github.com/apple/foundationdb/bindings/go/src/fdb"

// Native returns the connection of an open cluster.
func (d *Database) Native() fdb.Database { return d.native }

// OpenSilent opens a cluster without asking whether it answers.
func OpenSilent(file string) (*Database, error) {
	native, err := connect(file)
	return newDatabase(native), err
}
