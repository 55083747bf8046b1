package layout_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestRecordsOfManyTypes encodes records of so many types that some of them meet in the table
// of schemas, each by several goroutines at once.
func TestRecordsOfManyTypes(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	for i := range 150 {
		name := fmt.Sprintf("%c%c", 'a'+i/26, 'a'+i%26)
		of := reflect.StructOf([]reflect.StructField{{
			Name: "Number", Type: reflect.TypeFor[int](), Tag: reflect.StructTag(`msgpack:"` + name + `"`),
		}})
		for range 4 {
			running.Go(func() {
				record := reflect.New(of)
				record.Elem().Field(0).SetInt(7)
				want := append([]byte{layout.RecordVersion, 0x81, 0xa2}, name+"\x07"...)
				value := layout.Encode(record.Interface())
				back := reflect.New(of).Interface()
				if string(value) != string(want) || layout.Decode(nil, value, back) != nil ||
					!reflect.DeepEqual(record.Interface(), back) {
					t.Errorf("%s: %x, want %x; back %v", name, value, want, back)
				}
			})
		}
	}
	running.Wait()
	require.Panics(t, func() {
		layout.Encode(&struct {
			Wrong chan int `msgpack:"w"`
		}{})
	})
}
