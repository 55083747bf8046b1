//go:build fdb

package tuple_test

import (
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"

	bindings "github.com/apple/foundationdb/bindings/go/src/fdb/tuple"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

var update = flag.Bool("update", false, "write "+goldenFile+" by FoundationDB's bindings")

// It runs before the parallel tests, which read the file that it writes.
func TestGoldenComesFromBindings(t *testing.T) {
	cases := goldenCases()
	if *update {
		var text strings.Builder
		text.WriteString("# Keys as FoundationDB's bindings pack them; written by: go test -tags fdb -update\n")
		for _, c := range cases {
			key := hex.EncodeToString(toBindings(c.tuple).Pack())
			if key == "" {
				key = "-"
			}
			text.WriteString(c.name + " " + key + "\n")
		}
		require.NoError(t, os.WriteFile(goldenFile, []byte(text.String()), 0o644))
	}
	golden := readGolden(t)
	for _, c := range cases {
		require.Equal(t, golden[c.name], hex.EncodeToString(toBindings(c.tuple).Pack()), c.name)
	}
}

func toBindings(t tuple.Tuple) bindings.Tuple {
	converted := bindings.Tuple{}
	for _, e := range t {
		switch e := e.(type) {
		case tuple.Tuple:
			converted = append(converted, toBindings(e))
		case tuple.UUID:
			converted = append(converted, bindings.UUID(e))
		case tuple.Stamp:
			converted = append(converted, bindings.Versionstamp{TransactionVersion: e.Version(), UserVersion: e.User()})
		default:
			converted = append(converted, e)
		}
	}
	return converted
}
