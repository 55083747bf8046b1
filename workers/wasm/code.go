package wasm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/tetratelabs/wazero"
)

// machineCode is the compiled form of a module, with the name by which the engine asks
// for it: that covers the module, the engine's version and the processor's
// features.
type machineCode struct {
	name  [sha256.Size]byte
	bytes []byte
}

// maxCode bounds the compiled form of a module, in bytes.
const maxCode = 256 * mebibyte

// errStale is returned for code that is damaged, or was made by another version
// or for another processor.
var errStale = errors.New("wasm: compiled code that can't be used here")

// codeExchange is where an engine looks for compiled code and leaves it, in
// memory.
type codeExchange struct {
	// given is what the engine may take. If it is set, the engine must not compile.
	given *machineCode
	// made is what the engine has compiled.
	made machineCode
}

// Get implements the cache that the engine uses.
func (x *codeExchange) Get(name [sha256.Size]byte) (io.ReadCloser, bool, error) {
	switch {
	case x.given == nil:
		return nil, false, nil
	case x.given.name != name:
		return nil, false, errStale
	}
	return io.NopCloser(bytes.NewReader(x.given.bytes)), true, nil
}

// Add implements the cache that the engine uses.
func (x *codeExchange) Add(name [sha256.Size]byte, content io.Reader) error {
	made, err := io.ReadAll(content)
	x.made = machineCode{name, made}
	return err
}

// Delete implements the cache that the engine uses: it is called for what was
// made by another version.
func (*codeExchange) Delete([sha256.Size]byte) error { return errStale }

// newExchangeCache returns a cache that gives and takes by way of the exchange.
// The engine comes with caches in memory and in directories only, and a child has
// no directory: so the cache is set where one with a directory would be.
func newExchangeCache(x *codeExchange) (wazero.CompilationCache, error) {
	cache := wazero.NewCompilationCache()
	place := reflect.ValueOf(cache).Elem().FieldByName("fileCache")
	if !place.IsValid() || place.Kind() != reflect.Interface || !reflect.TypeOf(x).Implements(place.Type()) {
		return nil, fmt.Errorf("wasm: the engine %T has no place for a cache", cache)
	}
	reflect.NewAt(place.Type(), place.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(x))
	return cache, nil
}
