package wasmbench

import (
	"bytes"
	"encoding/binary"
)

// The function reads its input into memory, hashes it by FNV-1a many times over,
// and writes the four bytes of the hash.
const (
	inputSize = 4096
	offset32  = 2166136261
	prime32   = 16777619
)

// Addresses in the function's memory: a vector of one buffer, the number of
// bytes moved, and the buffer.
const (
	vectorAt = 0
	movedAt  = 8
	bufferAt = 1024
)

// expected is what the function writes.
func expected(input []byte, rounds int) []byte {
	h := uint32(offset32)
	for range rounds {
		for _, b := range input {
			h = (h ^ uint32(b)) * prime32
		}
	}
	return binary.LittleEndian.AppendUint32(nil, h)
}

// Opcodes and types of WebAssembly.
const (
	typeI32     = 0x7f
	opBlockVoid = 0x40
	opLoop      = 0x03
	opEnd       = 0x0b
	opBranchIf  = 0x0d
	opCall      = 0x10
	opDrop      = 0x1a
	opGet       = 0x20
	opSet       = 0x21
	opTee       = 0x22
	opLoad      = 0x28
	opLoad8     = 0x2d
	opStore     = 0x36
	opConst     = 0x41
	opLess      = 0x49
	opAdd       = 0x6a
	opMultiply  = 0x6c
	opXor       = 0x73
)

// Local variables of the function.
const (
	localLength = iota
	localHash
	localAt
	localRound
	locals
)

// module builds the function. Only its number of rounds varies.
func module(rounds int) []byte {
	const reads, writes, start = 0, 1, 2
	wasi := func(name string) []byte {
		return join(text("wasi_snapshot_preview1"), text(name), []byte{0, 0})
	}
	body := join([]byte{1, locals, typeI32}, instructions(rounds, reads, writes), []byte{opEnd})
	return join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{0x60, 4, typeI32, typeI32, typeI32, typeI32, 1, typeI32}, []byte{0x60, 0, 0}),
		section(2, wasi("fd_read"), wasi("fd_write")),
		section(3, []byte{1}),
		section(5, []byte{0, 16}),
		section(7, join(text("memory"), []byte{2, 0}), join(text("_start"), []byte{0, start})),
		section(10, join(number(len(body)), body)))
}

func instructions(rounds, reads, writes int) []byte {
	hash := uint32(offset32)
	moves := func(descriptor, function int) []byte {
		return join(constant(descriptor), constant(vectorAt), constant(1), constant(movedAt),
			[]byte{opCall, byte(function), opDrop})
	}
	step := func(local byte) []byte { return join([]byte{opGet, local}, constant(1), []byte{opAdd, opTee, local}) }
	store := func(at, value int) []byte { return join(constant(at), constant(value), []byte{opStore, 2, 0}) }
	return join(
		store(vectorAt, bufferAt), store(vectorAt+4, inputSize), moves(0, reads),
		constant(movedAt), []byte{opLoad, 2, 0, opSet, localLength},
		constant(int(int32(hash))), []byte{opSet, localHash},
		[]byte{opLoop, opBlockVoid}, constant(0), []byte{opSet, localAt},
		[]byte{opLoop, opBlockVoid, opGet, localHash, opGet, localAt, opLoad8, 0}, number(bufferAt),
		[]byte{opXor}, constant(prime32), []byte{opMultiply, opSet, localHash},
		step(localAt), []byte{opGet, localLength, opLess, opBranchIf, 0, opEnd},
		step(localRound), constant(rounds), []byte{opLess, opBranchIf, 0, opEnd},
		constant(bufferAt), []byte{opGet, localHash, opStore, 2, 0}, store(vectorAt+4, 4), moves(1, writes),
	)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func number(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func text(s string) []byte { return append(number(len(s)), s...) }

func section(id byte, items ...[]byte) []byte {
	content := join(number(len(items)), join(items...))
	return join([]byte{id}, number(len(content)), content)
}

// constant pushes an i32, in signed LEB128.
func constant(value int) []byte {
	encoded := []byte{opConst}
	for {
		octet := byte(value & 0x7f)
		value >>= 7
		if value == 0 && octet&0x40 == 0 || value == -1 && octet&0x40 != 0 {
			return append(encoded, octet)
		}
		encoded = append(encoded, octet|0x80)
	}
}
