package wasm

import (
	"bytes"
	"encoding/binary"
)

// assembler builds small modules. Functions are numbered with imports first.
type assembler struct {
	imports   []importedFunction
	functions []function
	pages     int // of memory; -1 for no memory
	maxPages  int // 0 for no limit
	tables    [][2]uint32
	globals   [][]byte
	elements  [][]byte
	data      map[uint32]string
	segments  [][]byte // of data, behind those
	counted   bool     // it says how many segments there are
	start     []byte   // number of the function to call at the start, or nil
	sections  [][]byte // further ones, behind all others
}

type importedFunction struct {
	module, name string
	parameters   int // all of i32
	results      int
	wide         bool // its result is of i64
}

type function struct {
	export  string
	results int // all of i32
	locals  int // all of i32
	body    []byte
}

func unsigned(value uint64) []byte { return binary.AppendUvarint(nil, value) }

func signed(value int64) []byte { return appendSigned(nil, value) }

func named(name string) []byte { return append(unsigned(uint64(len(name))), name...) }

func section(id byte, items ...[]byte) []byte {
	content := append(unsigned(uint64(len(items))), bytes.Join(items, nil)...)
	return rawSection(id, content)
}

func rawSection(id byte, content []byte) []byte {
	return append(append([]byte{id}, unsigned(uint64(len(content)))...), content...)
}

func functionType(parameters, results int) []byte {
	const i32 = 0x7f
	kind := append([]byte{0x60}, unsigned(uint64(parameters))...)
	kind = append(kind, bytes.Repeat([]byte{i32}, parameters)...)
	kind = append(kind, unsigned(uint64(results))...)
	return append(kind, bytes.Repeat([]byte{i32}, results)...)
}

func (a assembler) module() []byte {
	var types, imports, functions, exports, bodies, tables, data [][]byte
	number := func(n int) []byte { return unsigned(uint64(n)) }
	for _, f := range a.imports {
		imports = append(imports, bytes.Join([][]byte{named(f.module), named(f.name), {0}, number(len(types))}, nil))
		kind := functionType(f.parameters, f.results)
		if f.wide {
			kind[len(kind)-1] = 0x7e
		}
		types = append(types, kind)
	}
	for i, f := range a.functions {
		functions = append(functions, number(len(types)))
		types = append(types, functionType(0, f.results))
		if f.export != "" {
			exports = append(exports, append(append(named(f.export), 0), number(len(a.imports)+i)...))
		}
		body := []byte{0}
		if f.locals > 0 {
			body = append(append([]byte{1}, number(f.locals)...), 0x7f)
		}
		body = append(append(body, f.body...), 0x0b)
		bodies = append(bodies, append(number(len(body)), body...))
	}
	for _, table := range a.tables {
		tables = append(tables, bytes.Join([][]byte{{0x70, 1}, unsigned(uint64(table[0])), unsigned(uint64(table[1]))}, nil))
	}
	for at, text := range a.data {
		data = append(data, bytes.Join([][]byte{{0, 0x41}, signed(int64(at)), {0x0b}, named(text)}, nil))
	}
	module := []byte("\x00asm\x01\x00\x00\x00")
	add := func(id byte, items [][]byte) {
		if len(items) > 0 {
			module = append(module, section(id, items...)...)
		}
	}
	add(sectionType, types)
	add(sectionImport, imports)
	add(sectionFunction, functions)
	add(sectionTable, tables)
	if a.pages >= 0 {
		memory := append([]byte{0}, number(a.pages)...)
		if a.maxPages > 0 {
			memory = append(append([]byte{1}, number(a.pages)...), number(a.maxPages)...)
		}
		add(sectionMemory, [][]byte{memory})
		exports = append(exports, append(append(named("memory"), 2), 0))
	}
	add(sectionGlobal, a.globals)
	add(sectionExport, exports)
	if a.start != nil {
		module = append(module, rawSection(sectionStart, a.start)...)
	}
	add(sectionElement, a.elements)
	data = append(data, a.segments...)
	if a.counted {
		module = append(module, rawSection(sectionDataCount, number(len(data)))...)
	}
	add(sectionCode, bodies)
	add(sectionData, data)
	return append(module, bytes.Join(a.sections, nil)...)
}

// Instructions.

func code(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func constant(value int32) []byte { return append([]byte{0x41}, signed(int64(value))...) }

func callTo(function int) []byte { return append([]byte{0x10}, unsigned(uint64(function))...) }

func endless(body ...[]byte) []byte {
	return code([]byte{0x03, 0x40}, code(body...), []byte{0x0c, 0, 0x0b})
}

// countTo runs body n times; it uses the local.
func countTo(n int32, local byte, body ...[]byte) []byte {
	return code([]byte{0x03, 0x40}, code(body...),
		[]byte{0x20, local}, constant(1), []byte{0x6a, 0x22, local}, constant(n), []byte{0x49, 0x0d, 0, 0x0b})
}

var (
	unreachable = []byte{0x00}
	drop        = []byte{0x1a}
	load32      = []byte{0x28, 2, 0}
	store32     = []byte{0x36, 2, 0}
	growMemory  = []byte{0x40, 0}
	nullFunc    = []byte{0xd0, 0x70}
	growTable   = []byte{0xfc, 15, 0}
)

func wasiImport(name string, parameters int) importedFunction {
	return importedFunction{module: wasiModule, name: name, parameters: parameters, results: 1}
}

// Modules with one exported function "_start".

func starting(pages int, body []byte, imports ...importedFunction) assembler {
	return assembler{
		imports: imports, pages: pages,
		functions: []function{{export: "_start", locals: 1, body: body}},
	}
}

// smallLoop takes about a tenth to a half of a millisecond.
func smallLoop(turns int32) []byte { return starting(17, countTo(turns, 0)).module() }

// printing writes the text once per turn, to the descriptor.
func printing(descriptor, turns int32, text string) []byte {
	const vector, written, begin = 0, 16, 1024
	a := starting(1, code(
		constant(vector), constant(begin), store32,
		constant(vector+4), constant(int32(len(text))), store32,
		countTo(turns, 0, constant(descriptor), constant(vector), constant(1), constant(written), callTo(0), drop),
	), wasiImport("fd_write", 4))
	a.data = map[uint32]string{begin: text}
	return a.module()
}

// printingThen writes the text to both streams and goes on with body.
func printingThen(text string, body []byte, imports ...importedFunction) assembler {
	const vector, written, begin = 0, 16, 1024
	print := func(descriptor int32) []byte {
		return code(constant(descriptor), constant(vector), constant(1), constant(written), callTo(0), drop)
	}
	a := starting(1, code(
		constant(vector), constant(begin), store32,
		constant(vector+4), constant(int32(len(text))), store32,
		print(1), print(2), body,
	), append([]importedFunction{wasiImport("fd_write", 4)}, imports...)...)
	a.data = map[uint32]string{begin: text}
	return a
}

// sleeping sleeps for an hour by poll_oneoff; function is its number.
func sleeping(function int) []byte {
	const subscription, events, count = 256, 512, 600
	const high, low = 838, 817405952 // 3600e9 in two halves
	return code(
		constant(subscription+24), constant(low), store32,
		constant(subscription+28), constant(high), store32,
		constant(subscription), constant(events), constant(1), constant(count), callTo(function), drop,
	)
}
