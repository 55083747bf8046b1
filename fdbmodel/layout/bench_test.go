package layout_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// usual are records as most futures have them.
func usual() map[string]layout.Record {
	worker := layout.WorkerID("0123456789abcdef")
	token := layout.Token{Worker: worker, Sequence: 1234}
	return map[string]layout.Record{
		"spec": &layout.Spec{
			Function: "go:thumbnail", Codec: layout.CodecMsgpack, Args: bytes.Repeat([]byte("a"), 100), ArgsSize: 100,
			Queue: "default", Requirements: layout.Requirements{CPU: 500, RAM: 1 << 28}, MaxRetries: 3,
			Session: "fedcba9876543210", SubmittedAt: 1_700_000_000_000,
		},
		"claim":    &layout.Claim{Token: token},
		"attempts": &layout.Attempts{Failed: 1, Due: 1_700_000_000_000},
		"result": &layout.Result{Token: token, Codec: layout.CodecMsgpack, Value: bytes.Repeat([]byte("v"), 100), Size: 100,
			Attempt: 1, RunTime: 1_000_000, At: 1_700_000_000_000},
		"batch": &layout.ClaimBatch{IDs: layout.PackIDs(make([]layout.ID, 20))},
		"done":  &layout.DoneEntry{At: 1_700_000_000_000, IDs: layout.PackIDs(make([]layout.ID, 20))},
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, record := range usual() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				layout.Encode(record)
			}
		})
	}
	b.Run("notice", func(b *testing.B) {
		b.ReportAllocs()
		n := notice()
		for b.Loop() {
			layout.MailValue(layout.AppendNotice(nil, n), 1)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, record := range usual() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			value := layout.Encode(record)
			empty := emptyOf(record)
			for b.Loop() {
				if err := layout.Decode(nil, value, empty()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("notice", func(b *testing.B) {
		b.ReportAllocs()
		item := kv.KeyValue{Value: layout.MailValue(layout.AppendNotice(nil, notice()), 1)}
		for b.Loop() {
			if _, err := layout.AppendNotices(nil, item); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func emptyOf(record layout.Record) func() layout.Record {
	kinds := keyspace.Table().Kinds()
	at := slices.IndexFunc(kinds, func(k layout.KeyKind) bool {
		return k.Record != nil && reflect.TypeOf(k.Record()) == reflect.TypeOf(record)
	})
	return kinds[at].Record
}

func notice() *layout.Notice {
	result, _ := usual()["result"].(*layout.Result)
	return &layout.Notice{ID: modeltest.GoldenID, State: layout.Realized, Result: result}
}
