// Package expect compares what keys hold with what results of one transaction depend on.
package expect

import (
	"bytes"
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Reads has the keys that the results of one transaction depend on: as they were read, or as an earlier result of the
// transaction writes them. It belongs to one goroutine.
type Reads map[string]*read

// read is what a key holds: as read, or as a result has written it since.
type read struct {
	asked   kv.Pending[[]byte]
	written bool
	value   []byte
}

// Ask requests keys.
func (r Reads) Ask(tx kv.Reader, expected []kv.KeyValue) {
	for _, item := range expected {
		if _, asked := r[string(item.Key)]; !asked {
			r[string(item.Key)] = &read{asked: tx.Get(item.Key)}
		}
	}
}

// Hold reports whether keys that were asked for have their expected values, nil for keys that are absent. Then
// those of writes count as written.
func (r Reads) Hold(ctx context.Context, expected, writes []kv.KeyValue) (bool, error) {
	for _, item := range expected {
		at := r[string(item.Key)]
		value := at.value
		if !at.written {
			var err error
			if value, err = at.asked.Wait(ctx); err != nil {
				return false, err
			}
		}
		if (value == nil) != (item.Value == nil) || !bytes.Equal(value, item.Value) {
			return false, nil
		}
	}
	for _, item := range writes {
		if at := r[string(item.Key)]; at != nil {
			at.written, at.value = true, item.Value
		}
	}
	return true, nil
}
