package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// peerClients answers clients that ask for a batch by a message: as the same request over
// HTTP that waits for its results.
type peerClients struct {
	handler http.Handler
	host    string // that requests are for
	token   string
	waiting atomic.Int64
}

// maxPeerClients bounds the clients that are waited for at a time.
const maxPeerClients = 64

// execute implements peerhead.Options.Execute.
func (c *peerClients) execute(ctx context.Context, _ p2p.PeerID, m *protocol.ExecuteBatch,
) *protocol.ExecuteBatchResponse {
	if c.waiting.Add(1) > maxPeerClients {
		c.waiting.Add(-1)
		return refused(protocol.CodeUnavailable, "the head waits for %d batches of peers: try again", maxPeerClients)
	}
	defer c.waiting.Add(-1)
	body, err := json.Marshal(struct {
		Topic       string            `json:"topic,omitempty"`
		Template    protocol.Template `json:"template"`
		Arguments   [][]string        `json:"arguments"`
		MaxAttempts uint64            `json:"max_attempts,omitempty"`
	}{m.Topic, m.Template, m.Arguments, m.MaxAttempts})
	if err != nil {
		return refused(protocol.CodeInvalid, "%v", err)
	}
	const path = "/api/v1/functions/execute/batch?answer=chunks"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.host+path, bytes.NewReader(body))
	if err != nil {
		return refused(protocol.CodeError, "%v", err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := m.Carrier[name]; value != "" {
			r.Header.Set(name, value)
		}
	}
	r.RemoteAddr = "127.0.0.1:0"
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer := &heldAnswer{header: http.Header{}, status: http.StatusOK}
	c.handler.ServeHTTP(answer, r)
	return answer.batch()
}

func refused(code protocol.Code, format string, args ...any) *protocol.ExecuteBatchResponse {
	return &protocol.ExecuteBatchResponse{Code: code, Message: fmt.Sprintf(format, args...)}
}

// heldAnswer is an answer over HTTP that stays in memory.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *heldAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *heldAnswer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter. It returns p2p.ErrTooLarge beyond what a message
// may have.
func (a *heldAnswer) Write(p []byte) (int, error) {
	if most := p2p.DefaultLimits().MaxMessage; a.body.Len()+len(p) > most {
		return 0, fmt.Errorf("%w: results of more than %d bytes", p2p.ErrTooLarge, most)
	}
	return a.body.Write(p)
}

// batch is the answer as a message.
func (a *heldAnswer) batch() *protocol.ExecuteBatchResponse {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(a.body.Bytes(), &fields); err != nil {
		return refused(protocol.CodeError, "the results are not one message: get them by HTTP")
	}
	if a.status >= http.StatusBadRequest {
		var message string
		_ = json.Unmarshal(fields["message"], &message) // the code says enough
		return refused(protocol.Code(strconv.Itoa(a.status)), "%s", message)
	}
	if err := apart(fields); err != nil {
		return refused(protocol.CodeError, "%v", err)
	}
	fields["type"] = json.RawMessage(`"` + protocol.TypeExecuteBatchResponse + `"`)
	data, err := json.Marshal(fields)
	if err == nil {
		var m protocol.Message
		if m, err = protocol.Decode(data); err == nil {
			return m.(*protocol.ExecuteBatchResponse)
		}
	}
	return refused(protocol.CodeError, "%v", err)
}

// apart puts equal items of a chunk into chunks of their own, CHUNK:2 and so on: a message
// has one result for each id of an item. Over HTTP they are ID#2 and so on.
func apart(fields map[string]json.RawMessage) error {
	if fields["chunks"] == nil {
		return nil
	}
	type chunk struct {
		Peer    string                     `json:"peer,omitempty"`
		Results map[string]json.RawMessage `json:"results"`
	}
	var chunks map[string]chunk
	if err := json.Unmarshal(fields["chunks"], &chunks); err != nil {
		return err
	}
	split := map[string]chunk{}
	for id, c := range chunks {
		for item, result := range c.Results {
			to, plain := id, item
			if name, n, again := strings.Cut(item, "#"); again {
				to, plain = id+":"+n, name
			}
			if split[to].Results == nil {
				split[to] = chunk{c.Peer, map[string]json.RawMessage{}}
			}
			split[to].Results[plain] = result
		}
	}
	data, err := json.Marshal(split)
	fields["chunks"] = data
	return err
}
