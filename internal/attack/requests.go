package attack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
)

// noise is bytes that a seed determines.
func noise(seed int) []byte {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	b := make([]byte, r.IntN(4<<10))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// asker sends requests on a few connections.
type asker struct {
	http.Transport
	target *Target
}

func newAsker(t *Target) *asker {
	a := &asker{target: t}
	a.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return t.dial(ctx, address) }
	a.MaxIdleConnsPerHost, a.DisableCompression = parallel, true
	return a
}

// ask sends a request and reads the answer. Answers of any status are fine, as
// are connections that are closed.
func (a *asker) ask(ctx context.Context, method, path, token string, body []byte, headers ...string) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+a.target.Address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := a.RoundTrip(r)
	if err != nil {
		return ctx.Err()
	}
	_, _ = io.Copy(io.Discard, response.Body) // it may be cut off
	return response.Body.Close()
}

// RequestFlood sends requests of one client as fast as it can.
func RequestFlood(ctx context.Context, t *Target, size int) (func(), error) {
	a := newAsker(t)
	return a.CloseIdleConnections, flood(size, func(i int) error {
		switch i % 3 {
		case 0:
			return a.ask(ctx, http.MethodPost, "/api/v1/futures", t.Token, []byte(`{"function":"go:nobody"}`))
		case 1:
			return a.ask(ctx, http.MethodGet, "/api/v1/futures?limit=100", t.Token, nil)
		default:
			return a.ask(ctx, http.MethodGet, "/api/v1/cluster", t.Token, nil)
		}
	})
}

// WrongTokens try tokens.
func WrongTokens(ctx context.Context, t *Target, size int) (func(), error) {
	a := newAsker(t)
	return a.CloseIdleConnections, flood(size, func(i int) error {
		return a.ask(ctx, http.MethodPost, "/api/v1/futures", fmt.Sprintf("%064x", i), []byte(`{"function":"go:nobody"}`))
	})
}

// Queues submits futures to as many queues, and reads the counts meanwhile.
func Queues(ctx context.Context, t *Target, size int) (func(), error) {
	a := newAsker(t)
	const each = 500
	return a.CloseIdleConnections, flood((size+each-1)/each, func(i int) error {
		var b strings.Builder
		for n := range each {
			fmt.Fprintf(&b, `,{"function":"go:nobody","queue":"q-%d-%d"}`, i, n)
		}
		body := `{"futures":[` + b.String()[1:] + `]}`
		if err := a.ask(ctx, http.MethodPost, "/api/v1/futures:submit", t.Token, []byte(body)); err != nil {
			return err
		}
		for range 5 {
			if err := a.ask(ctx, http.MethodGet, "/api/v1/cluster", t.Token, nil); err != nil {
				return err
			}
			if err := a.ask(ctx, http.MethodGet, "/metrics", t.Token, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// fill repeats a text within a body of about size bytes.
func fill(before, repeated, after string, size int) []byte {
	return []byte(before + strings.Repeat(repeated, max(1, size/len(repeated))) + after)
}

// shapes are JSON that is small and large at once.
func shapes(size int) map[string][]byte {
	return map[string][]byte{
		"empty objects": fill(`{"futures":[{}`, `,{}`, `]}`, size), "empty lists": fill(`{"futures":[[]`, `,[]`, `]}`, size),
		"open lists": fill("", "[", "", size), "open objects": fill("", `{"a":`, "", size),
		"nested": fill(`{"function":"go:nobody","input":`+strings.Repeat("[", size/2), "]", "}", size/2),
		"names":  fill(`{"function":"go:nobody"`, `,"a":0`, `}`, size), "spaces": fill("{", " ", "}", size),
		"numbers": fill(`{"function":"go:nobody","argv":[0`, `,0`, `]}`, size),
		"texts":   fill(`{"function":"go:nobody","argv":[""`, `,""`, `]}`, size),
		"env":     fill(`{"function":"go:nobody","env":{"a":"`, "x", `"}}`, size),
		"digits":  fill(`{"function":"go:nobody","priority":`, "9", `}`, size),
		"escapes": fill(`{"function":"go:nobody","args":"`, `\u0000`, `"}`, size),
	}
}

// Shapes sends JSON of a size that takes many times as much when it is decoded,
// to each route that takes JSON.
func Shapes(ctx context.Context, t *Target, size int) (func(), error) {
	a := newAsker(t)
	var bodies [][]byte
	for _, body := range shapes(size) {
		bodies = append(bodies, body)
	}
	lists := fill(`{"template":{"function_id":"f"},"arguments":[[""]`, `,[""]`, `]}`, size)
	const one = `{"name":"a","value":"b"}`
	variables := fill(`{"function_id":"f","config":{"env_vars":[`+one, `,`+one, `]}}`, size)
	large := fill(`{"function_id":"f","config":{"env_vars":[{"name":"a","value":"`, "x", `"}]}}`, size)
	bodies = append(bodies, lists, variables, large)
	paths := []string{"/api/v1/futures", "/api/v1/futures:submit", "/api/v1/functions/execute",
		"/api/v1/functions/execute/batch"}
	return a.CloseIdleConnections, flood(len(bodies)*len(paths), func(i int) error {
		return a.ask(ctx, http.MethodPost, paths[i%len(paths)], t.Token, bodies[i/len(paths)%len(bodies)])
	})
}

// zip compresses.
func zip(b []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(b) // a buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

// Bombs send gzip that unpacks to size bytes, at once.
func Bombs(ctx context.Context, t *Target, size int) (func(), error) {
	a := newAsker(t)
	bodies := [][]byte{
		zip(fill(`{"template":{"function_id":"f"},"arguments":[[""]`, `,["",""]`, `]}`, size)), zip(make([]byte, size)),
		zip(fill(`{"template":{"function_id":"f","config":{"stdin":"`, "x", `"}},"arguments":[]}`, size)),
		zip(zip(make([]byte, size))),
	}
	paths := []string{"/api/v1/functions/execute/batch", "/api/v1/functions/execute", "/api/v1/functions/install",
		"/api/v1/futures"}
	return a.CloseIdleConnections, flood(2*len(bodies)*len(paths), func(i int) error {
		return a.ask(ctx, http.MethodPost, paths[i%len(paths)], t.Admin, bodies[i/len(paths)%len(bodies)],
			"Content-Encoding", "gzip")
	})
}

// Archives install archives whose files claim to have size bytes each.
func Archives(ctx context.Context, t *Target, size int) (func(), error) {
	a := newAsker(t)
	sparse, packed, names := &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	for i := range 8 {
		writeSparse(sparse, fmt.Sprintf("%d.wasm", i), size)
	}
	w := tar.NewWriter(packed)
	for i := range 4 {
		_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.wasm", i), Size: int64(size), Mode: 0o644}) // it is valid
		_, _ = w.Write(append([]byte("\x00asm\x01\x00\x00\x00"), make([]byte, size-8)...))
	}
	w = tar.NewWriter(names)
	for i := range 2000 {
		_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("../%d", i), Mode: 0o644}) // it is valid
	}
	_ = w.WriteHeader(&tar.Header{Name: strings.Repeat("x/", 200<<10), Mode: 0o644, Format: tar.FormatPAX})
	bodies := [][]byte{zip(sparse.Bytes()), zip(packed.Bytes()), zip(names.Bytes()), zip(noise(size))}
	return a.CloseIdleConnections, flood(2*len(bodies), func(i int) error {
		return a.ask(ctx, http.MethodPost, "/api/v1/functions/install", t.Admin, bodies[i%len(bodies)],
			"Content-Type", "application/gzip")
	})
}

// writeSparse adds a file to an archive that is a hole of size bytes, in the
// format 1.0 of GNU's PAX headers.
func writeSparse(to *bytes.Buffer, name string, size int) {
	const block = 512
	content := "1\n0\n8\n"
	content += strings.Repeat("\x00", block-len(content)) + "\x00asm\x01\x00\x00\x00"
	var records strings.Builder
	for _, r := range []string{
		"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprintf("GNU.sparse.realsize=%d", size),
	} {
		fmt.Fprintf(&records, "%02d %s\n", len(r)+4, r)
	}
	start := to.Len()
	w := tar.NewWriter(to)
	for _, file := range []struct{ name, content string }{{"PaxHeaders/" + name, records.String()}, {name, content}} {
		// A buffer takes everything.
		_ = w.WriteHeader(&tar.Header{
			Name: file.name, Typeflag: tar.TypeReg, Size: int64(len(file.content)), Mode: 0o644, Format: tar.FormatUSTAR,
		})
		_, _ = io.WriteString(w, file.content)
	}
	_ = w.Flush()
	const typeAt, sumAt, sumBytes = 156, 148, 8
	header := to.Bytes()[start : start+block]
	header[typeAt] = tar.TypeXHeader
	copy(header[sumAt:sumAt+sumBytes], strings.Repeat(" ", sumBytes))
	sum := 0
	for _, c := range header {
		sum += int(c)
	}
	copy(header[sumAt:], fmt.Sprintf("%06o\x00 ", sum))
}
