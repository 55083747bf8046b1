package objects_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/futura-run/futura/workers/objects"
)

func Example() {
	dir, err := os.MkdirTemp("", "objects-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := objects.Open(objects.Options{Memory: 1 << 20, Disk: 1 << 30, Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ref, err := store.Put(context.Background(), strings.NewReader("content"), objects.PutOptions{})
	if err != nil {
		log.Fatal(err)
	}
	object, err := store.Open(ref.Hash)
	if err != nil {
		log.Fatal(err)
	}
	defer object.Close()
	content, err := io.ReadAll(object)
	fmt.Println(ref.Size, string(content), err)
	// Output: 7 content <nil>
}
