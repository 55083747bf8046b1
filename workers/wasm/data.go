package wasm

import (
	"cmp"
	"slices"
)

// dataSegment is bytes that are copied to a place of the memory before a call.
type dataSegment struct {
	at    uint32
	bytes []byte
}

func (s *dataSegment) end() int64 { return int64(s.at) + int64(len(s.bytes)) }

// maxDataGap is how many zeros between two segments are written out to make them
// one: the engine takes as long for a segment as for copying some thousand bytes.
const maxDataGap = 256

// joinData returns a data section with segments that nearly touch as one: the linker
// of Go cuts data wherever it has some zeros, into tens of thousands of segments. Memory
// is the same afterwards. A section that would more than double, or whose segments have no
// fixed places or overlap, so that their order matters, is returned as it is.
func joinData(content []byte) []byte {
	r := &reader{bytes: content}
	segments := make([]dataSegment, r.count("data segments", maxData))
	for i := range segments {
		var fixed bool
		if segments[i], fixed = r.fixedSegment(); !fixed {
			return content
		}
	}
	slices.SortStableFunc(segments, func(a, b dataSegment) int { return cmp.Compare(a.at, b.at) })
	zeros, joined := 0, segments[:0]
	for _, next := range segments {
		last := &dataSegment{}
		if len(joined) > 0 {
			last = &joined[len(joined)-1]
		}
		switch gap := int64(next.at) - last.end(); {
		case len(joined) == 0, gap > maxDataGap:
			joined = append(joined, next)
		case gap < 0, zeros+int(gap) > len(content):
			return content
		default:
			zeros += int(gap)
			last.bytes = append(append(last.bytes, make([]byte, gap)...), next.bytes...)
		}
	}
	out := appendLEB(make([]byte, 0, len(content)+zeros), uint32(len(joined)))
	for _, s := range joined {
		out = append(appendSigned(append(out, 0, opI32Const), int64(int32(s.at))), opEnd)
		out = append(appendLEB(out, uint32(len(s.bytes))), s.bytes...)
	}
	return out
}

const (
	opI32Const = 0x41
	opEnd      = 0x0b
)

// fixedSegment reads a segment, and reports whether its place is a constant.
func (r *reader) fixedSegment() (s dataSegment, fixed bool) {
	if r.u32() != 0 || r.u8() != opI32Const {
		return s, false
	}
	from := r.at
	place := int64(r.leb(35))
	if unused := 64 - 7*(r.at-from); unused > 0 {
		place = place << unused >> unused // the sign
	}
	s.at = uint32(place)
	if place != int64(int32(place)) || r.u8() != opEnd {
		return s, false
	}
	s.bytes = r.take(uint64(r.u32()))
	return s, r.err == nil
}

func appendSigned(to []byte, value int64) []byte {
	for {
		octet := byte(value & 0x7f)
		value >>= 7
		if value == 0 && octet&0x40 == 0 || value == -1 && octet&0x40 != 0 {
			return append(to, octet)
		}
		to = append(to, octet|0x80)
	}
}
