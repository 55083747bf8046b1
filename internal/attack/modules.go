package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
)

// assemble returns a module with one function, "_start", of which body is the
// code, after as many functions that do nothing. Function 0 is fd_read and 1 is
// fd_write.
func assemble(idle int, body ...byte) []byte {
	number := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	text := func(s string) []byte { return append(number(len(s)), s...) }
	section := func(id byte, parts ...[]byte) []byte {
		content := bytes.Join(parts, nil)
		return append(append([]byte{id}, number(len(content))...), content...)
	}
	const end = 0x0b
	wasi := text("wasi_snapshot_preview1")
	filler := bytes.Repeat([]byte{0x41, 1, 0x41, 2, 0x6a, 0x1a}, 200) // 1+2, dropped
	filler = append(append([]byte{0}, filler...), end)
	filler = append(number(len(filler)), filler...)
	body = append(append([]byte{0}, body...), end)
	types := append(number(idle+1), make([]byte, idle+1)...)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}),
		section(2, []byte{2}, wasi, text("fd_read"), []byte{0, 1}, wasi, text("fd_write"), []byte{0, 1}),
		section(3, types),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, text("memory"), []byte{2, 0}, text("_start"), []byte{0}, number(2+idle)),
		section(10, number(idle+1), bytes.Repeat(filler, idle), number(len(body)), body),
	}, nil)
}

// Copy returns the module of Function, which writes up to 32 KiB of its input.
func Copy() []byte {
	return assemble(0,
		0x41, 0, 0x41, 0x80, 0x08, 0x36, 2, 0, // the vector at 0 begins at 1,024
		0x41, 4, 0x41, 0x80, 0x80, 2, 0x36, 2, 0, // and has 32,768 bytes
		0x41, 0, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a, // read; the number goes to 8
		0x41, 4, 0x41, 8, 0x28, 2, 0, 0x36, 2, 0, // which is now the vector's length
		0x41, 1, 0x41, 0, 0x41, 1, 0x41, 12, 0x10, 1, 0x1a) // write
}

// Endless returns a module that never ends.
func Endless() []byte { return assemble(0, 0x03, 0x40, 0x0c, 0, 0x0b) }

// Growing returns a module that takes memory until it gets none.
func Growing() []byte {
	return assemble(0, 0x03, 0x40, 0x41, 16, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x00)
}

// Flooding returns a module that writes its memory for ever.
func Flooding() []byte {
	return assemble(0,
		0x41, 4, 0x41, 0x80, 0x80, 2, 0x36, 2, 0, // the vector at 0 has 32,768 bytes from 0
		0x03, 0x40, 0x41, 1, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 1, 0x1a, 0x0c, 0, 0x0b)
}

// Large returns a module that writes some blocks of 32 KiB.
func Large(blocks int) []byte {
	count := signed(nil, blocks)
	code := []byte{0x41, 4, 0x41, 0x80, 0x80, 2, 0x36, 2, 0, 0x41, 16} // the vector, and the address of the counter
	code = append(append(append(code, 0x41), count...), 0x36, 2, 0)
	return assemble(0, append(code,
		0x03, 0x40, 0x41, 1, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 1, 0x1a, // write
		0x41, 16, 0x41, 16, 0x28, 2, 0, 0x41, 1, 0x6b, 0x36, 2, 0, // one less
		0x41, 16, 0x28, 2, 0, 0x0d, 0, 0x0b)...)
}

// signed appends a positive number in the encoding of constants.
func signed(b []byte, n int) []byte {
	for ; n >= 1<<6; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// Slow returns a module with many functions to compile.
func Slow(functions int) []byte { return assemble(functions) }

// Modules stores modules that harm, and submits futures of them.
func Modules(ctx context.Context, t *Target, size int) (func(), error) {
	a := newAsker(t)
	for name, module := range map[string][]byte{
		"endless": Endless(), "growing": Growing(), "flooding": Flooding(), "slow": Slow(2000), "none": noise(7),
		"cut": Copy()[:100],
	} {
		path := "/api/v1/functions?alias=" + name
		if err := a.ask(ctx, http.MethodPost, path, t.Admin, module, "Content-Type", "application/wasm"); err != nil {
			return a.CloseIdleConnections, err
		}
		for range size {
			body := fmt.Sprintf(`{"function":"wasm:%s","queue":%q,"timeout_ms":500,"max_retries":0}`, name, t.Queue)
			if err := a.ask(ctx, http.MethodPost, "/api/v1/futures", t.Token, []byte(body)); err != nil {
				return a.CloseIdleConnections, err
			}
		}
	}
	return a.CloseIdleConnections, nil
}
