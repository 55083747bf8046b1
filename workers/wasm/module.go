package wasm

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// What a module may have at most. The engine allocates by the numbers that a
// module claims, so they are checked against its bytes first.
const (
	maxTypes        = 1_000_000
	maxParameters   = 1_000
	maxFunctions    = 1_000_000
	maxImports      = 100_000
	maxExports      = 100_000
	maxGlobals      = 1_000_000
	maxTables       = 100
	maxTableEntries = 1_000_000 // of all tables together, also after they grew
	maxElements     = 1_000_000 // initial values of tables
	maxData         = 100_000
	maxBody         = 8 * mebibyte
	maxLocals       = 50_000     // of a function
	maxAllLocals    = 10_000_000 // of all functions together
)

// Sections of a module, by their numbers in the format.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export",
	"start", "element", "code", "data", "data count"}

var (
	moduleMagic   = []byte("\x00asm")
	moduleVersion = []byte{1, 0, 0, 0}
)

// inspection walks a module once. It refuses what must not reach the engine and
// writes down the rest.
type inspection struct {
	out       []byte
	allLocals int
	elements  int
	entries   int
	minMemory uint64
	counted   bool // its code may name data segments by their numbers
}

// inspect checks that the bytes are a module, that its claims are within
// bounds, and that it imports nothing but what a function may have. It returns
// the module as the engine gets it, with bounded tables, joined data and without
// custom sections other than names, at most twice as large, and the least memory
// that an instance has, in bytes. Errors are *Error. What inspect accepts may still be invalid code.
func inspect(module []byte, maxSize int64) (checked []byte, minMemory uint64, err error) {
	if int64(len(module)) > maxSize {
		return nil, 0, failf(KindTooLarge, "the module has %d bytes, the limit is %d", len(module), maxSize)
	}
	if err := checkHeader(module); err != nil {
		return nil, 0, fail(KindUnloadable, err)
	}
	pass := &inspection{out: make([]byte, 0, len(module)+64)}
	pass.out = append(pass.out, module[:8]...)
	input := &reader{bytes: module, at: 8}
	for input.more() {
		id, size := input.u8(), input.u32()
		content := input.take(uint64(size))
		if input.err == nil {
			input.err = pass.section(id, content)
		}
	}
	if input.err != nil {
		return nil, 0, asError(KindUnloadable, fmt.Errorf("the module %w", input.err))
	}
	return pass.out, pass.minMemory, nil
}

func checkHeader(module []byte) error {
	if !bytes.HasPrefix(module, moduleMagic) {
		return fmt.Errorf("this is not a WebAssembly module: it begins with %.16q, not with %q", module, moduleMagic)
	}
	if len(module) < 8 {
		return fmt.Errorf("the module %w", errCutShort)
	}
	switch version := module[4:8]; {
	case bytes.Equal(version, moduleVersion):
		return nil
	case binary.LittleEndian.Uint16(version[2:]) == 1:
		return fmt.Errorf("this is a WebAssembly component; build a core module for WASI preview 1 instead")
	default:
		return fmt.Errorf("the module is of version %x; only version 1 is supported", version)
	}
}

func (p *inspection) section(id byte, content []byte) error {
	section := &reader{bytes: content}
	switch id {
	case sectionCustom:
		if section.name() == "name" && namesAreSound(section) {
			p.emit(id, content)
		}
		return nil
	case sectionType:
		walkTypes(section)
	case sectionImport:
		walkImports(section)
	case sectionFunction:
		section.count("functions", maxFunctions)
		section.at = len(content)
	case sectionTable:
		content = p.boundTables(section)
	case sectionMemory:
		p.walkMemories(section)
	case sectionGlobal:
		section.count("globals", maxGlobals)
		section.at = len(content)
	case sectionExport:
		for n := section.count("exports", maxExports); n > 0 && section.err == nil; n-- {
			section.name()
			section.u8()
			section.u32()
		}
	case sectionStart:
		section.u32()
	case sectionDataCount:
		section.u32()
		p.counted = true
	case sectionElement:
		p.walkElements(section)
	case sectionCode:
		p.walkCode(section)
	case sectionData:
		if walkData(section); section.err == nil && !p.counted {
			content = joinData(content)
		}
	default:
		return fmt.Errorf("has a section of unknown kind %d", id)
	}
	if section.err == nil && section.left() > 0 {
		section.failf("has %d bytes left over", section.left())
	}
	if section.err != nil {
		return fmt.Errorf("can't be loaded: its %s section %w", sectionNames[id], section.err)
	}
	p.emit(id, content)
	return nil
}

func (p *inspection) emit(id byte, content []byte) {
	p.out = append(p.out, id)
	p.out = appendLEB(p.out, uint32(len(content)))
	p.out = append(p.out, content...)
}

func appendLEB(to []byte, value uint32) []byte { return binary.AppendUvarint(to, uint64(value)) }

func walkTypes(r *reader) {
	for n := r.count("types", maxTypes); n > 0 && r.err == nil; n-- {
		if form := r.u8(); r.err == nil && form != 0x60 {
			r.failf("has a type that is not a function type (0x%02x)", form)
		}
		for range 2 { // parameters, results
			for _, value := range r.take(uint64(r.count("parameters or results", maxParameters))) {
				if value == 0x63 || value == 0x64 {
					r.failf("uses typed references, which are not supported")
				}
			}
		}
	}
}

// walkImports lets functions of WASI preview 1 and of hostModule pass and nothing else.
func walkImports(r *reader) {
	for n := r.count("imports", maxImports); n > 0 && r.err == nil; n-- {
		module, name, kind := r.name(), r.name(), r.u8()
		r.u32() // the type of a function
		if r.err != nil {
			return
		}
		_, known := preview1[name]
		_, asks := hostFunctions[name]
		switch {
		case module == hostModule && !asks:
			r.failf("imports %q from %q, which does not have it: this worker may be too old for it", name, module)
		case module == hostModule && kind == 0:
		case module != wasiModule && module != hostModule:
			r.failf("imports %q from %q; a function may import only from %q and %q", name, module, wasiModule, hostModule)
		case kind != 0:
			r.failf("imports %q from %q as something other than a function", name, module)
		case !known:
			r.failf("imports %q from %q, which WASI preview 1 does not have", name, module)
		}
	}
}

// boundTables returns the section with the sizes to which tables may grow cut
// to what all of them may have together. The format lets a table fail to grow at
// any time.
func (p *inspection) boundTables(r *reader) []byte {
	type table struct {
		element byte
		least   uint32
		most    uint32
	}
	var tables []table
	for n := r.count("tables", maxTables); n > 0 && r.err == nil; n-- {
		t := table{element: r.u8(), most: 1<<32 - 1}
		flags := r.u8()
		if r.err == nil && (flags > 1 || t.element != 0x70 && t.element != 0x6f) {
			r.failf("has a table of an unsupported type")
		}
		t.least = r.u32()
		if flags == 1 {
			t.most = r.u32()
		}
		if r.err == nil && t.least > t.most {
			r.failf("has a table whose least size is above its greatest")
		}
		if t.least > maxTableEntries || p.entries+int(t.least) > maxTableEntries {
			r.failf("has tables of more than %d entries", maxTableEntries)
			return nil
		}
		p.entries += int(t.least)
		tables = append(tables, t)
	}
	if r.err != nil {
		return nil
	}
	bounded := appendLEB(nil, uint32(len(tables)))
	share := uint32(maxTableEntries-p.entries) / uint32(max(1, len(tables)))
	for _, t := range tables {
		bounded = append(bounded, t.element, 1)
		bounded = appendLEB(bounded, t.least)
		bounded = appendLEB(bounded, min(t.most, t.least+share))
	}
	return bounded
}

func (p *inspection) walkMemories(r *reader) {
	for n := r.count("memories", 1); n > 0 && r.err == nil; n-- {
		flags := r.u8()
		if r.err == nil && flags > 1 {
			r.failf("has a memory that is shared or of 64 bits, which is not supported")
		}
		p.minMemory = uint64(r.u32()) * 64 * kibibyte
		if flags == 1 {
			r.u32()
		}
		if p.minMemory > maxLinearMemory {
			r.failf("has a memory of more than 4 GiB")
		}
	}
}

func (p *inspection) walkElements(r *reader) {
	for n := r.count("element segments", maxElements); n > 0 && r.err == nil; n-- {
		flags := r.u32()
		if flags > 7 {
			r.failf("has an element segment of unknown kind %d", flags)
			return
		}
		passive, indexed, expressions := flags&1 != 0, flags&2 != 0, flags&4 != 0
		if !passive {
			if indexed {
				r.u32()
			}
			r.constant()
		}
		if passive || indexed {
			if kind := r.u8(); kind == 0x63 || kind == 0x64 {
				r.failf("uses typed references, which are not supported")
			}
		}
		items := r.count("elements", maxElements)
		if p.elements += items; p.elements > maxElements {
			r.failf("has more than %d elements", maxElements)
		}
		for ; items > 0 && r.err == nil; items-- {
			if expressions {
				r.constant()
			} else {
				r.u32()
			}
		}
	}
}

func (p *inspection) walkCode(r *reader) {
	for n := r.count("functions", maxFunctions); n > 0 && r.err == nil; n-- {
		size := r.u32()
		if size > maxBody {
			r.failf("has a function of %d bytes, the limit is %d", size, maxBody)
			return
		}
		body := &reader{bytes: r.take(uint64(size))}
		if r.err != nil {
			return
		}
		locals := uint64(0)
		for groups := body.count("groups of locals", maxLocals); groups > 0 && body.err == nil; groups-- {
			locals += uint64(body.u32())
			if kind := body.u8(); kind == 0x63 || kind == 0x64 {
				body.failf("uses typed references, which are not supported")
			}
		}
		switch {
		case body.err != nil:
			r.failf("%w", body.err)
		case locals > maxLocals:
			r.failf("has a function of %d locals, the limit is %d", locals, maxLocals)
		case p.allLocals+int(locals) > maxAllLocals:
			r.failf("has functions of more than %d locals together", maxAllLocals)
		}
		p.allLocals += int(locals)
	}
}

func walkData(r *reader) {
	for n := r.count("data segments", maxData); n > 0 && r.err == nil; n-- {
		switch flags := r.u32(); flags {
		case 0:
			r.constant()
		case 1:
		case 2:
			r.u32()
			r.constant()
		default:
			r.failf("has a data segment of unknown kind %d", flags)
		}
		r.take(uint64(r.u32()))
	}
}

// namesAreSound reports whether the rest of a name section is well formed. Names
// only serve messages, so that a malformed section can be dropped.
func namesAreSound(r *reader) bool {
	for r.more() {
		id := r.u8()
		subsection := &reader{bytes: r.take(uint64(r.u32()))}
		switch id {
		case 0:
			subsection.name()
		case 1:
			walkNames(subsection)
		case 2:
			for n := subsection.count("functions", maxFunctions); n > 0 && subsection.err == nil; n-- {
				subsection.u32()
				walkNames(subsection)
			}
		default:
			continue
		}
		if subsection.err != nil || subsection.left() > 0 {
			return false
		}
	}
	return r.err == nil
}

func walkNames(r *reader) {
	for n := r.count("names", maxFunctions); n > 0 && r.err == nil; n-- {
		r.u32()
		r.name()
	}
}
