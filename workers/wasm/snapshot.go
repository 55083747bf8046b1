package wasm

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// snapshot is the state with which each call of an instance begins. What its memory holds then is with the memory.
type snapshot struct {
	parts    parts
	globals  [][2]uint64
	tables   [][]uintptr
	segments []int
	made     int // functions
}

// What an instance and its snapshot take of each, in bytes at most, beside its memory.
const (
	globalSize   = 128
	entrySize    = 16 // of a table or an element segment
	functionSize = 64
	segmentSize  = 64
)

// size is what the instance and its snapshot take without its memory.
func (s *snapshot) size() int64 {
	entries := 0
	for _, references := range s.tables {
		entries += len(references)
	}
	for _, references := range s.segments[s.parts.data.Len():] {
		entries += references
	}
	return int64(globalSize*len(s.globals) + entrySize*entries + functionSize*s.made + segmentSize*len(s.segments))
}

// parts are what a call can change of an instance. The engine's type of it is internal, its fields are not.
type parts struct {
	engine interface {
		GetGlobalValue(index uint32) (low, high uint64)
		SetGlobalValue(index uint32, low, high uint64)
		MemoryGrown()
	}
	globals  int
	memory   reflect.Value // a pointer, nil if it has none
	tables   reflect.Value // pointers
	data     reflect.Value // segments; those that were dropped are empty
	elements reflect.Value // the same
	made     reflect.Value // functions that there are references to; the engine keeps one for each time it is referred to
	wasi     reflect.Value // a pointer to arguments, environment and descriptors
}

func partsOf(module api.Module) (p parts) {
	instance := reflect.ValueOf(module).Elem()
	reflect.ValueOf(&p.engine).Elem().Set(instance.FieldByName("Engine").Elem())
	p.globals = instance.FieldByName("Globals").Len()
	p.memory, p.tables = instance.FieldByName("MemoryInstance"), instance.FieldByName("Tables")
	p.data, p.elements = instance.FieldByName("DataInstances"), instance.FieldByName("ElementInstances")
	p.wasi = instance.FieldByName("Sys")
	p.made = instance.FieldByName("Engine").Elem().Elem().FieldByName("localFunctionInstances")
	return p
}

// table returns the references of a table, as they are in it.
func (p *parts) table(index int) []uintptr {
	return p.tables.Index(index).Elem().FieldByName("References").Interface().([]uintptr)
}

// segments returns the sizes of all segments.
func (p *parts) segments() (sizes []int) {
	for _, list := range []reflect.Value{p.data, p.elements} {
		for i := range list.Len() {
			sizes = append(sizes, list.Index(i).Len())
		}
	}
	return sizes
}

// takeSnapshot has the calls of an instance begin with its present state.
func (i *instance) takeSnapshot() {
	s := &snapshot{parts: partsOf(i.module)}
	s.segments, s.made = s.parts.segments(), s.parts.made.Len()
	for index := range s.parts.globals {
		low, high := s.parts.engine.GetGlobalValue(uint32(index))
		s.globals = append(s.globals, [2]uint64{low, high})
	}
	for index := range s.parts.tables.Len() {
		s.tables = append(s.tables, slices.Clone(s.parts.table(index)))
	}
	i.memory.keep()
	i.snapshot = s
}

// restore reports whether the state is that of the snapshot afterwards. An instance whose tables or segments were
// changed, or that made references to functions, stays so: few functions do that.
func (i *instance) restore() bool {
	s, p := i.snapshot, &i.snapshot.parts
	for index, references := range s.tables {
		if !slices.Equal(references, p.table(index)) {
			return false
		}
	}
	if !slices.Equal(s.segments, p.segments()) || p.made.Len() != s.made {
		return false
	}
	for index, value := range s.globals {
		p.engine.SetGlobalValue(uint32(index), value[0], value[1])
	}
	p.wasi.SetZero()
	if p.memory.IsNil() {
		return true
	}
	content, restored := i.memory.restore()
	if !restored {
		return false
	}
	memory := p.memory.Elem()
	memory.FieldByName("Buffer").SetBytes(content)
	memory.FieldByName("Cap").SetUint(uint64(len(content)) / (64 * kibibyte))
	p.engine.MemoryGrown()
	return true
}

// connect gives an instance that was restored what WASI has for a call: new descriptors, as nothing was done with
// them. A blank instance was made with it.
func (e *engine) connect(ctx context.Context, i *instance, config wazero.ModuleConfig) error {
	blank, err := e.runtime.InstantiateModule(ctx, e.blank, config)
	if err != nil {
		return err
	}
	made := partsOf(blank)
	i.snapshot.parts.wasi.Set(made.wasi)
	made.wasi.SetZero()
	return blank.Close(ctx)
}

// blankModule has an empty table, an empty memory and a global, and no code.
var blankModule = append(append(slices.Clone(moduleMagic), moduleVersion...),
	sectionTable, 4, 1, 0x70, 0, 0,
	sectionMemory, 3, 1, 0, 0,
	sectionGlobal, 6, 1, 0x7f, 1, opI32Const, 0, opEnd)

// compileBlank compiles blankModule, and fails if the engine is of a version whose instances can't be restored.
func (e *engine) compileBlank(ctx context.Context) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("%v", recovered)
		}
		if err != nil {
			err = fmt.Errorf("wasm: instances of this version of the engine can't be restored: %w", err)
		}
	}()
	if e.blank, err = e.compileAgain(ctx, blankModule); err != nil {
		return err
	}
	i := &instance{memory: e.memories.get(0)}
	defer func() { e.discard(i) }()
	i.module, err = e.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, i.memory), e.blank, e.instance)
	if err != nil {
		return err
	}
	i.takeSnapshot()
	if !i.restore() {
		return errors.New("a blank one is another afterwards")
	}
	return e.connect(ctx, i, e.instance)
}
