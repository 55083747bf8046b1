package archive_test

import (
	"bytes"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/transfer/archive"
)

// A file can be verified without a store.
func ExampleVerify() {
	var file bytes.Buffer
	w, err := archive.NewWriter(&file, archive.Head{Cluster: "shop"})
	if err != nil {
		panic(err)
	}
	if err := w.Add([]byte("a key"), []byte("its value")); err != nil {
		panic(err)
	}
	if _, err := w.Close(); err != nil {
		panic(err)
	}
	whole := file.Bytes()
	head, _, err := archive.Verify(bytes.NewReader(whole))
	fmt.Println(head.Cluster, err)
	_, _, err = archive.Verify(bytes.NewReader(whole[:len(whole)-1]))
	fmt.Println(err != nil)
	// Output:
	// shop <nil>
	// true
}
