// Package random shares one source of randomness among goroutines.
package random

import (
	"encoding/binary"
	"io"
	"sync"
)

// Source is a source of randomness. Its methods are safe for concurrent use.
type Source struct {
	mu sync.Mutex
	r  io.Reader
}

// From returns a source that reads from r.
func From(r io.Reader) *Source { return &Source{r: r} }

// Read implements io.Reader.
func (s *Source) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Read(b)
}

// Float returns a number in [0,1), as Uint64 does.
func (s *Source) Float() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

// Intn returns a number in [0,n), as Uint64 does.
func (s *Source) Intn(n int) int { return int(s.Uint64() % uint64(n)) }

// Uint64 is for where bad randomness costs only speed: on an error it returns 0.
func (s *Source) Uint64() uint64 {
	var b [8]byte
	_, _ = io.ReadFull(s, b[:])
	return binary.LittleEndian.Uint64(b[:])
}
