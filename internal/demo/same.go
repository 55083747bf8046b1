package demo

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/futura-run/futura/examples/wasm/countlines/summary"
)

// same compares the bytes that a function gave with what they should be.
func (d *demo) same(got []byte, want summary.Summary) (bool, error) {
	if !d.options.Typed {
		return bytes.Equal(got, append(want.JSON(), '\n')), nil
	}
	var s summary.Summary
	if err := msgpack.Unmarshal(got, &s); err != nil {
		return false, err
	}
	return s == want, nil
}
