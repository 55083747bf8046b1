package reference_test

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/reference"
)

func ExampleReferences_Resolve() {
	args := []byte(`{"total":{"$future":"01b8dac5-b400-7003-8c11-bd98d2fd9b00"}}`)
	found, err := reference.Find(layout.CodecJSON, args)
	if err != nil {
		panic(err)
	}
	resolved, err := found.Resolve(1000, func(id layout.ID) (reference.Value, error) {
		return reference.Value{Codec: layout.CodecRaw, Bytes: []byte("a dozen")}, nil
	})
	fmt.Println(string(resolved), err)
	// Output: {"total":"a dozen"} <nil>
}
