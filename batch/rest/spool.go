package rest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// spoolMemory is how many bytes of results are held in memory; the rest are in
// a temporary file.
const spoolMemory = 8 << 20

// spooledBytes is what a result holds in memory beside its bytes: where they are, in a slice that grows, and its id.
const spooledBytes = 100

// spool collects results in the order of the items, and returns them in that of
// their chunks.
type spool struct {
	chunks map[string]*spooledChunk
	memory []byte
	file   *os.File
	out    *bufio.Writer
	size   int64
}

type spooledChunk struct {
	worker  string
	results []spooledResult
}

type spooledResult struct {
	id           string
	offset, size int64
}

// add keeps what write writes as a result.
func (s *spool) add(chunk, worker, id string, write func(io.Writer) error) error {
	c := s.chunks[chunk]
	if c == nil {
		if s.chunks == nil {
			s.chunks = map[string]*spooledChunk{}
		}
		c = &spooledChunk{worker: worker}
		s.chunks[chunk] = c
	}
	start := s.size
	err := write(s)
	c.results = append(c.results, spooledResult{id, start, s.size - start})
	return err
}

// Write implements io.Writer: what has no room in memory goes to a file.
func (s *spool) Write(b []byte) (int, error) {
	s.size += int64(len(b))
	if s.file == nil && s.size <= spoolMemory {
		s.memory = append(s.memory, b...)
		return len(b), nil
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	return s.out.Write(b)
}

// open moves what was kept to a temporary file.
func (s *spool) open() error {
	f, err := os.CreateTemp("", "futura-results-*")
	if err != nil {
		return fmt.Errorf("results above %d bytes are collected in a temporary file: %w", spoolMemory, err)
	}
	s.file, s.out = f, bufio.NewWriterSize(f, 64<<10)
	_, err = s.out.Write(s.memory)
	s.memory = nil
	return err
}

// close ends the spool.
func (s *spool) close() {
	if s.file != nil {
		_ = errors.Join(s.file.Close(), os.Remove(s.file.Name())) // nothing depends on it any more
	}
}

// copy writes a result's bytes.
func (s *spool) copy(to io.Writer, r spooledResult) error {
	var from io.ReaderAt = bytes.NewReader(s.memory)
	if s.file != nil {
		from = s.file
	}
	_, err := io.Copy(to, io.NewSectionReader(from, r.offset, r.size))
	return err
}

// writeChunks writes the beginning of a chunksBody, up to and with its chunks. A
// result whose id is taken in its chunk gets "#2" behind it, and so on.
func (s *spool) writeChunks(w io.Writer, strands bool) error {
	if s.out != nil {
		if err := s.out.Flush(); err != nil {
			return err
		}
	}
	out := &jsonWriter{w: w}
	if strands {
		out.text(`{"strands":{`)
	} else {
		out.text(`{"chunks":{`)
	}
	ids := make([]string, 0, len(s.chunks))
	for id := range s.chunks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for i, id := range ids {
		if i > 0 {
			out.text(",")
		}
		c := s.chunks[id]
		out.value(id)
		out.text(`:{"peer":`)
		out.value(c.worker)
		out.text(`,"results":{`)
		if err := s.writeResults(out, c); err != nil {
			return err
		}
		out.text("}}")
	}
	out.text("}")
	return out.err
}

func (s *spool) writeResults(out *jsonWriter, c *spooledChunk) error {
	slices.SortStableFunc(c.results, func(a, b spooledResult) int { return strings.Compare(a.id, b.id) })
	same := 1
	for i, r := range c.results {
		key := r.id
		if i > 0 {
			out.text(",")
		}
		if same++; i == 0 || c.results[i-1].id != r.id {
			same = 1
		}
		if same > 1 {
			key = fmt.Sprintf("%s#%d", r.id, same)
		}
		out.value(key)
		out.text(":")
		if err := s.copy(out.w, r); err != nil {
			return err
		}
	}
	return out.err
}
