package tuple_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/tuple"
)

func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	key := make([]byte, 0, 128)
	for b.Loop() {
		key = appendFutureKey(key[:0])
	}
}

func BenchmarkReader(b *testing.B) {
	b.ReportAllocs()
	key := appendFutureKey(nil)
	for b.Loop() {
		r := tuple.NewReader(key)
		r.Expect("futura")
		r.Expect("default")
		r.Int()
		r.Expect("futures")
		r.UUID()
		if r.Done() != nil {
			b.Fatal(r.Err())
		}
	}
}

func BenchmarkPack(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := tuple.Pack("futura", "default", 3, "futures", testID)
		require.NoError(b, err)
	}
}

func appendFutureKey(key []byte) []byte {
	key = tuple.AppendString(key, "futura")
	key = tuple.AppendString(key, "default")
	key = tuple.AppendInt(key, 3)
	key = tuple.AppendString(key, "futures")
	return tuple.AppendUUID(key, testID)
}
