package workers

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// errDropped ends a result that is not wanted any more.
var errDropped = errors.New("workers: the module has failed")

// moduleStreams are the streams of a module's call: the inputs that it reads, and the
// result that it writes to the object store.
type moduleStreams struct {
	worker *Worker
	job    *job
	input  *inputStream  // the last one that was opened
	result *resultStream // nil until it writes, and once the result was taken
	failed error         // of result
}

// stream has a call stream what is too large for memory. The output goes to the object
// store only if that has room for more than memory has: what does not fit there is stored
// with the cluster, from memory. All other output is stored with the cluster as it comes,
// unless middleware is to have the whole of it.
func (m *moduleStreams) stream(call *ModuleCall) {
	if m.job.streamed != nil {
		call.Input = m.open
	}
	switch k := m.job.membership.kept; {
	case k != nil && m.job.future.Spec.AsObject:
		if k.store.Stats().Free > layout.MaxPut {
			call.Output = m
		}
	case !m.worker.wraps(m.job.function()) || m.worker.options.StreamsOutput:
		call.Output, call.OutputBound = m, true
	}
}

// open returns the inputs of the job, from the beginning.
func (m *moduleStreams) open(ctx context.Context) io.Reader {
	m.closeInput()
	m.input = &inputStream{worker: m.worker, job: m.job, ctx: ctx, inputs: m.job.streamed}
	return m.input
}

// Write implements io.Writer.
func (m *moduleStreams) Write(p []byte) (n int, err error) {
	if m.result == nil {
		m.result = m.job.openResult()
	}
	if n, err = m.result.Write(p); err != nil {
		m.failed = err
	}
	return n, err
}

// take returns the result, which the caller ends.
func (m *moduleStreams) take() *resultStream {
	result := m.result
	m.result = nil
	return result
}

// failure returns how the attempt ends if a stream has failed.
func (m *moduleStreams) failure() *fdbmodel.Completion {
	var c fdbmodel.Completion
	switch {
	case m.input != nil && m.input.failed != nil:
		c = m.worker.withoutInputs(m.job, m.input.failed)
	case m.failed != nil:
		c = m.worker.ended(m.job, m.take(), m.failed, layout.Result{})
	default:
		return nil
	}
	return &c
}

func (m *moduleStreams) close() {
	m.closeInput()
	if m.result != nil {
		_ = m.take().end(errDropped, &layout.Result{})
	}
}

func (m *moduleStreams) closeInput() {
	if m.input != nil {
		m.input.close()
	}
}

// inputStream reads the results of inputs one after the other. It has one in memory, or
// a part of it.
type inputStream struct {
	worker *Worker
	job    *job
	ctx    context.Context
	inputs []layout.ID // that are neither in page nor were before
	page   []layout.ID
	rows   []layout.Row
	at     int // in page, of the next
	open   io.ReadCloser
	failed error
}

// Read implements io.Reader.
func (s *inputStream) Read(p []byte) (int, error) {
	for s.failed == nil {
		if s.open == nil {
			if s.at == len(s.page) && len(s.inputs) == 0 {
				return 0, io.EOF
			}
			s.open, s.failed = s.next()
			continue
		}
		n, err := s.open.Read(p)
		if errors.Is(err, io.EOF) {
			s.close()
			err = nil
		}
		s.failed = err
		if n > 0 {
			return n, nil
		}
	}
	return 0, s.failed
}

// next opens the result of the next input.
func (s *inputStream) next() (io.ReadCloser, error) {
	if s.at == len(s.page) {
		n := min(len(s.inputs), inputsAtOnce)
		rows, err := s.worker.inputRows(s.job, s.inputs[:n])
		if err != nil {
			return nil, err
		}
		s.page, s.inputs, s.rows, s.at = s.inputs[:n], s.inputs[n:], rows, 0
	}
	id := s.page[s.at]
	r, err := resultIn(s.rows, s.at, id)
	if err != nil {
		return nil, err
	}
	s.at++
	if r.Object == "" && r.ValueRef == nil {
		return io.NopCloser(bytes.NewReader(r.Value)), nil
	}
	return &sequence{ctx: s.ctx, reader: results.Of(s.worker.cluster).Open(id, r)}, nil
}

func (s *inputStream) close() {
	if s.open != nil {
		_ = s.open.Close()
		s.open = nil
	}
}
