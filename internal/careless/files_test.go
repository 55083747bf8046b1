package careless

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
)

// assemble makes a WASM module with one function, "_start", of which body is the
// code. Function 0 is fd_read and 1 is fd_write.
func assemble(body ...byte) []byte {
	name := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	section := func(id byte, parts ...[]byte) []byte {
		content := bytes.Join(parts, nil)
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	system := name("wasi_snapshot_preview1")
	body = append(append([]byte{0}, body...), 0x0b)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}),
		section(2, []byte{2}, system, name("fd_read"), []byte{0, 1}, system, name("fd_write"), []byte{0, 1}),
		section(3, []byte{1, 0}),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, name("memory"), []byte{2, 0}, name("_start"), []byte{0, 2}),
		section(10, []byte{1}, binary.AppendUvarint(nil, uint64(len(body))), body),
	}, nil)
}

// echoing writes what it reads, up to 32 KiB.
func echoing() []byte {
	return assemble(
		0x41, 0, 0x41, 0x80, 0x08, 0x36, 2, 0, // the vector at 0 begins at 1,024
		0x41, 4, 0x41, 0x80, 0x80, 2, 0x36, 2, 0, // and has 32,768 bytes
		0x41, 0, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a, // read; the number goes to 8
		0x41, 4, 0x41, 8, 0x28, 2, 0, 0x36, 2, 0, // which is now the vector's length
		0x41, 1, 0x41, 0, 0x41, 1, 0x41, 12, 0x10, 1, 0x1a)
}

func trapping() []byte { return assemble(0x00) }

func looping() []byte { return assemble(0x03, 0x40, 0x0c, 0, 0x0b) }

// hugeFile is more than anything takes, in bytes. It is sparse.
const hugeFile = 1 << 33

// makeFiles writes the files that commands are given, right and wrong ones.
func (w *walk) makeFiles() {
	for name, content := range map[string][]byte{
		"echo.wasm": echoing(), "trap.wasm": trapping(), "loop.wasm": looping(),
		"empty": nil, "binary": {0, 1, 2, 0xff, 0xfe, '\n', 0}, "text": []byte("no module\n"),
		"half.wasm": echoing()[:40], "magic.wasm": []byte("\x00asm\x01\x00\x00\x00"),
		"items.csv": []byte("a,b\nc,d\n\"e\",\n"), "items.ndjson": []byte("[\"a\"]\n[\"b\"]\n"),
		"bad.csv": []byte("\"a\nb"), "bad.json": []byte("{\"function_id\": [[[["),
		"settings.yaml": []byte("submit: {queue: q1}\n"),
		"bad.yaml":      []byte("submit: [\n"), "odd.yaml": []byte("nonsense: 1\n"),
		"input": bytes.Repeat([]byte("0123456789abcdef"), 2000), "large": bytes.Repeat([]byte{'x'}, 1<<20),
	} {
		w.must(os.WriteFile(filepath.Join(w.files, name), content, 0o600))
	}
	w.must(os.WriteFile(filepath.Join(w.files, "unreadable"), []byte("x"), 0o000))
	w.must(os.Mkdir(filepath.Join(w.files, "directory"), 0o700))
	w.must(os.WriteFile(filepath.Join(w.files, "huge"), nil, 0o600))
	w.must(os.Truncate(filepath.Join(w.files, "huge"), hugeFile))
	w.must(os.WriteFile(filepath.Join(w.files, "sparse.wasm"), echoing(), 0o600))
	w.must(os.Truncate(filepath.Join(w.files, "sparse.wasm"), 60<<20))
	w.must(os.Symlink("loop", filepath.Join(w.files, "loop")))
}

// wrongFiles are those that hold nothing that a command wants.
func wrongFiles() []string {
	return []string{"empty", "binary", "text", "half.wasm", "bad.csv", "bad.json", "unreadable", "directory", "huge",
		"sparse.wasm", "loop", "none", "directory/none", "text/none"}
}
