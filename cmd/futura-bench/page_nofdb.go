//go:build !fdb

package main

import (
	"context"
	"fmt"
)

// startFDB starts no server: this program can't reach one.
func startFDB(context.Context) (store, version string, stop func() error, err error) {
	return "", "", nil, fmt.Errorf("%w: this program was built without it; use make build-fdb", errNoFDB)
}
