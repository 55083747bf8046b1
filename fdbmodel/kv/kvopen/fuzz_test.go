package kvopen

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzName parses what is given as the name of a store.
func FuzzName(f *testing.F) {
	for _, name := range []string{
		"memory:", "embedded:d?sync=off", "remote:unix:/s", "remote:tcp:h:1?token-file=f&ca=c&tls=on", "fdb:f", "fdb://", "x",
		"embedded:%zz?%zz", "remote:tcp:[::1]:7?tls=off", "remote:",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if _, err := parse(name); err != nil {
			require.ErrorIs(t, err, ErrBadName)
		}
	})
}
