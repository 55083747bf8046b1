package source_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/batch/source"
)

// The modules of an archive, by their methods.
func ExampleUnpack() {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	code := []byte("\x00asm\x01\x00\x00\x00")
	err := errors.Join(
		files.WriteHeader(&tar.Header{Name: "./echo.wasm", Typeflag: tar.TypeReg, Size: int64(len(code))}),
		func() error { _, err := files.Write(code); return err }(),
		files.Close(), zip.Close(),
	)
	if err != nil {
		panic(err)
	}
	err = source.Unpack(context.Background(), nil, packed.Bytes(), func(m source.Module) error {
		fmt.Println(m.Method, len(m.Code))
		return nil
	})
	fmt.Println(err)
	// Output:
	// echo.wasm 8
	// <nil>
}

// A manifest on this machine is not fetched unless that is allowed.
func ExampleClient() {
	c := source.NewClient(source.Options{})
	_, err := c.Archive(context.Background(), "https://127.0.0.1:1/manifest.json", "")
	fmt.Println(errors.Is(err, source.ErrPrivate))
	// Output: true
}
