//go:build !fdb

package bank

import "go.uber.org/goleak"

// ignored are goroutines that live as long as the process.
func ignored() []goleak.Option { return nil }
