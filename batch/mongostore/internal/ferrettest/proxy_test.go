package ferrettest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// proxy passes on one request at a time, over all connections: the server's
// updates are not atomic by themselves. It drops the validators of new
// collections, which the server does not have, and makes faults.
type proxy struct {
	listener net.Listener
	backend  string
	dir      string // of the server's data
	running  sync.WaitGroup

	// turn is held while a request is with the server.
	turn        sync.Mutex
	connections map[net.Conn]struct{}
	// hold says what a command waits for before its turn; nil for nothing.
	hold func(c *command) <-chan struct{}
	// fault says what happens to a command; nil for none.
	fault func(c *command) fault
	// written is told of documents that are inserted, and of some documents of a
	// collection after an update.
	written func(collection string, document bson.Raw)
	// changed is told of the change of each document that was named by its key.
	changed func(collection string, update bson.Raw)
	// validators are passed on to the server.
	validators bool
}

// fault is what happens to a command.
type fault struct {
	// cutBefore closes the connection instead of passing the command on, and
	// cutAfter instead of passing the answer back.
	cutBefore, cutAfter bool
	// answer is given instead of the server's: without passing the command on, or
	// after that if it is applied.
	answer  bson.D
	applied bool
}

// command is a request as it was sent.
type command struct {
	name     string
	body     bson.Raw
	sections []section
}

// section is the documents that belong to a field of a command.
type section struct {
	field     string
	documents []bson.Raw
}

// Operation codes and offsets of the protocol.
const (
	opMessage   = 2013
	headerSize  = 16
	bodyAt      = headerSize + 4 + 1
	moreToCome  = 1 << 1
	maxMessages = 64 << 20
)

func startProxy(t *testing.T, backend string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, backend: backend, connections: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.turn.Lock()
		for c := range p.connections {
			_ = c.Close()
		}
		p.turn.Unlock()
		p.running.Wait()
	})
	return p
}

// uri is what clients connect to.
func (p *proxy) uri() string { return "mongodb://" + p.listener.Addr().String() + "/" }

// set changes what the proxy does between two requests.
func (p *proxy) set(change func(p *proxy)) {
	p.turn.Lock()
	defer p.turn.Unlock()
	change(p)
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.set(func(p *proxy) { p.connections[client] = struct{}{} })
		p.running.Go(func() {
			p.serve(client, server)
			_ = client.Close()
			_ = server.Close()
			p.set(func(p *proxy) { delete(p.connections, client) })
		})
	}
}

func (p *proxy) serve(client, server net.Conn) {
	for {
		request, err := readMessage(client)
		if err != nil {
			return
		}
		c, err := decode(request)
		if err != nil {
			return
		}
		p.wait(c)
		answer, err := p.exchange(server, request, c)
		if err != nil {
			return
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// wait lets a command wait while others pass it.
func (p *proxy) wait(c *command) {
	p.turn.Lock()
	var held <-chan struct{}
	if c != nil && p.hold != nil {
		held = p.hold(c)
	}
	p.turn.Unlock()
	if held != nil {
		<-held
	}
}

// exchange passes a request on and returns the answer, or an error if the
// connection is to be cut.
func (p *proxy) exchange(server net.Conn, request []byte, c *command) ([]byte, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	var f fault
	if c != nil {
		if p.fault != nil {
			f = p.fault(c)
		}
		if c.name == "create" && !p.validators {
			request = withoutValidator(request, c.body)
		}
		p.tellOfInserts(c)
	}
	if f.cutBefore {
		return nil, io.ErrUnexpectedEOF
	}
	if f.answer != nil && !f.applied {
		return message(request, f.answer)
	}
	answer, err := p.answer(server, request, c)
	if err == nil && answer == nil {
		return nil, nil
	}
	if err == nil && c != nil {
		err = p.tellOfUpdates(server, c)
	}
	switch {
	case f.cutAfter:
		return nil, io.ErrUnexpectedEOF
	case f.answer != nil:
		return message(request, f.answer)
	}
	return answer, err
}

// answer is the planner's or the server's answer to a request, nil if there is
// none.
func (p *proxy) answer(server net.Conn, request []byte, c *command) ([]byte, error) {
	if c != nil {
		if answer, err := p.plan(server, request, c); answer != nil || err != nil {
			return answer, err
		}
	}
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	if c != nil && binary.LittleEndian.Uint32(request[headerSize:])&moreToCome != 0 {
		return nil, nil
	}
	return readMessage(server)
}

func (p *proxy) tellOfInserts(c *command) {
	if c.name != "insert" || p.written == nil {
		return
	}
	for _, s := range c.sections {
		for _, document := range s.documents {
			p.written(c.body.Lookup("insert").StringValue(), document)
		}
	}
}

// tellOfUpdates reads documents of the collection that a command updated.
func (p *proxy) tellOfUpdates(server net.Conn, c *command) error {
	const most = 50
	if c.name != "update" && c.name != "findAndModify" || p.written == nil {
		return nil
	}
	collection := c.body.Lookup(c.name).StringValue()
	request, err := message(make([]byte, headerSize), bson.D{
		{Key: "find", Value: collection}, {Key: "limit", Value: int32(most)}, {Key: "singleBatch", Value: true},
		{Key: "batchSize", Value: int32(most)}, {Key: "$db", Value: c.body.Lookup("$db").StringValue()},
	})
	if err != nil {
		return err
	}
	if _, err := server.Write(request); err != nil {
		return err
	}
	answer, err := readMessage(server)
	if err != nil {
		return err
	}
	body, _, err := cutDocument(answer[bodyAt:])
	if err != nil {
		return err
	}
	found, err := body.LookupErr("cursor", "firstBatch")
	if err != nil {
		return err
	}
	documents, err := found.Array().Values()
	for _, document := range documents {
		p.written(collection, document.Document())
	}
	return err
}

func readMessage(from io.Reader) ([]byte, error) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(from, size); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size)
	if n < headerSize || n > maxMessages {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	whole := make([]byte, n)
	copy(whole, size)
	_, err := io.ReadFull(from, whole[4:])
	return whole, err
}

// decode returns the command of a message, nil if it is of an older kind.
func decode(whole []byte) (*command, error) {
	if binary.LittleEndian.Uint32(whole[12:]) != opMessage {
		return nil, nil
	}
	body, rest, err := cutDocument(whole[bodyAt:])
	if err != nil {
		return nil, err
	}
	first, err := body.IndexErr(0)
	if err != nil {
		return nil, err
	}
	c := &command{name: first.Key(), body: body}
	for len(rest) > 5 && rest[0] == 1 {
		size := binary.LittleEndian.Uint32(rest[1:])
		s := section{}
		in := rest[5 : 1+size]
		rest = rest[1+size:]
		end := 0
		for in[end] != 0 {
			end++
		}
		s.field, in = string(in[:end]), in[end+1:]
		for len(in) > 0 {
			var document bson.Raw
			if document, in, err = cutDocument(in); err != nil {
				return nil, err
			}
			s.documents = append(s.documents, document)
		}
		c.sections = append(c.sections, s)
	}
	return c, nil
}

func cutDocument(from []byte) (document bson.Raw, rest []byte, err error) {
	if len(from) < 5 || int(binary.LittleEndian.Uint32(from)) > len(from) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint32(from)
	return bson.Raw(from[:n]), from[n:], nil
}

// withoutValidator is a request to create a collection without its validator.
func withoutValidator(request []byte, body bson.Raw) []byte {
	var document, kept bson.D
	if err := bson.Unmarshal(body, &document); err != nil {
		return request
	}
	for _, e := range document {
		if e.Key != "validator" && e.Key != "validationLevel" && e.Key != "validationAction" {
			kept = append(kept, e)
		}
	}
	encoded, err := bson.Marshal(kept)
	if err != nil {
		return request
	}
	changed := append(append([]byte{}, request[:bodyAt]...), encoded...)
	binary.LittleEndian.PutUint32(changed, uint32(len(changed)))
	return changed
}

// message is an answer to a request.
func message(request []byte, body bson.D) ([]byte, error) {
	encoded, err := bson.Marshal(body)
	if err != nil {
		return nil, err
	}
	whole := make([]byte, bodyAt, bodyAt+len(encoded))
	whole = append(whole, encoded...)
	binary.LittleEndian.PutUint32(whole, uint32(len(whole)))
	copy(whole[8:12], request[4:8])
	binary.LittleEndian.PutUint32(whole[12:], opMessage)
	return whole, nil
}
