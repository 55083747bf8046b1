package bench

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// B7S is what a head of b7s with as many workers took for the items of the scenario peers, in
// batches of 1,000, the functions being a program that does nothing.
type B7S struct {
	Items          int     `json:"items"`
	ItemsPerSecond float64 `json:"items_per_second"`
	// Ratio is the rate of Futura's peers to that of b7s.
	Ratio float64 `json:"ratio"`
	// CPU is the processor time of an item in microseconds, in user and system mode, of
	// all nodes from their start to their end, with the processes of functions.
	CPU float64 `json:"cpu_us"`
}

// b7sUnset is what a report says that has no B7S.
const b7sUnset = "not compared: --b7s NODE names no node"

// Bounds of waiting for nodes of b7s.
const (
	b7sStart = 30 * time.Second
	b7sBatch = 10 * time.Minute
	b7sEnd   = 5 * time.Second
	b7sAgain = 300 * time.Millisecond
)

// b7sFile is the module in the archive of a function, which the runtime is named.
const b7sFile = "main.wasm"

// b7s are the nodes of a comparison, and the function that they run.
type b7s struct {
	program, dir string
	head         *b7sNode
	workers      []*b7sNode
	rest         string // of the head's API
	manifest     string // URL of the function's
	server       *http.Server
}

// compareB7S has a head of b7s and some workers run n items, the same as Futura's peers.
func (r *run) compareB7S(ctx context.Context, n, workers int) (report *B7S, err error) {
	r.begin("b7s", 0)
	dir, err := os.MkdirTemp("", "futura-bench-b7s-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, b7sBatch)
	defer cancel()
	before := spentSoFar()
	b := &b7s{program: r.options.B7S, dir: dir}
	took, err := b.run(ctx, n, workers, r.options.B7SStore)
	b.stop()
	if err != nil {
		return nil, fmt.Errorf("b7s: %w", err)
	}
	spent := spentSoFar().minus(before)
	return &B7S{
		Items: n, ItemsPerSecond: perSecond(n, took),
		CPU: round(float64(spent.user+spent.system)/float64(time.Microsecond)/float64(n), 1),
	}, nil
}

func (b *b7s) run(ctx context.Context, n, workers int, store string) (took time.Duration, err error) {
	if err := b.serve(); err != nil {
		return 0, err
	}
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	b.rest = "http://" + address + "/api/v1/functions/"
	args := []string{"--rest-api", address}
	if store != "" {
		args = append(args, "--batch-db-server", store, "--batch-db-name", "futura-bench")
	}
	if b.head, err = b.start(ctx, "head", args...); err != nil {
		return 0, err
	}
	runtime, err := exec.LookPath("true") // a function that does nothing
	if err != nil {
		return 0, err
	}
	args = []string{"--runtime-path", filepath.Dir(runtime), "--runtime-cli", filepath.Base(runtime),
		"--boot-nodes", b.head.address}
	for range workers {
		w, err := b.start(ctx, "worker", args...)
		if err != nil {
			return 0, err
		}
		b.workers = append(b.workers, w)
	}
	if err := b.install(ctx); err != nil {
		return 0, err
	}
	if err := b.warm(ctx, workers); err != nil {
		return 0, err
	}
	for from := 0; from < n; from += b7sMost {
		part, err := b.execute(ctx, from, min(n, from+b7sMost), workers)
		if err != nil {
			return 0, err
		}
		took += part
	}
	return took, nil
}

// b7sMost is how many items a batch for b7s has: its head waits only so long for workers.
const b7sMost = 1000

// serve serves the manifest and the archive of a function.
func (b *b7s) serve() error {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	module := []byte("\x00asm\x01\x00\x00\x00")
	err := files.WriteHeader(&tar.Header{Name: b7sFile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(module))})
	if err == nil {
		_, err = files.Write(module)
	}
	if err = errors.Join(err, files.Close(), zipped.Close()); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/manifest.json", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"runtime":{"url":"/f.tar.gz","checksum":"%x"}}`, sha256.Sum256(archive.Bytes()))
	})
	mux.HandleFunc("/f.tar.gz", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "f.tar.gz", time.Time{}, bytes.NewReader(archive.Bytes()))
	})
	b.manifest = "http://" + listener.Addr().String() + "/manifest.json"
	b.server = &http.Server{Handler: mux, ReadHeaderTimeout: b7sStart}
	go func() { _ = b.server.Serve(listener) }() // it ends with stop
	return nil
}

// freeAddress is one that nobody listened at a moment ago.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// install has the workers install the function. The head does not know when they listen
// to it, so it is asked again.
func (b *b7s) install(ctx context.Context) error {
	for limit := time.Now().Add(b7sStart); time.Now().Before(limit); {
		if _, err := b.post(ctx, "install", map[string]string{"uri": b.manifest, "cid": "any"}); err != nil &&
			!errors.Is(err, errNoAnswer) {
			return err
		}
		ready := 0
		for _, w := range b.workers {
			if w.await(ctx, b7sAgain, "downloaded function") != "" {
				ready++
			}
		}
		if ready == len(b.workers) {
			return nil
		}
	}
	return fmt.Errorf("the workers did not install the function within %v\n%s", b7sStart, b.workers[0].tail())
}

// warm runs small batches until one succeeds: nodes do not say at once what they have
// installed.
func (b *b7s) warm(ctx context.Context, workers int) error {
	for limit := time.Now().Add(b7sStart); ; {
		_, err := b.execute(ctx, 0, workers, workers)
		if err == nil || time.Now().After(limit) {
			return err
		}
		select {
		case <-time.After(b7sAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// execute has the head run the items from one to before another in a batch, checks that all
// succeeded, and times it.
func (b *b7s) execute(ctx context.Context, from, to, workers int) (time.Duration, error) {
	var arguments [][]string
	for i := from; i < to; i++ {
		arguments = append(arguments, []string{itemArgument(i)})
	}
	begin := time.Now()
	answer, err := b.post(ctx, "execute/batch", map[string]any{
		"template": map[string]any{
			"function_id": fmt.Sprintf("%x", sha256.Sum256([]byte(b.manifest))), "method": b7sFile,
			"config": map[string]any{"number_of_nodes": workers},
		},
		"arguments": arguments, "max_attempts": 1,
	})
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	type part struct {
		Results map[string]struct{ Code string }
	}
	var reply struct{ Chunks, Strands map[string]part }
	if err := json.Unmarshal(answer, &reply); err != nil {
		return 0, fmt.Errorf("the answer to a batch: %w: %.200s", err, answer)
	}
	done := 0
	for _, parts := range []map[string]part{reply.Chunks, reply.Strands} {
		for _, p := range parts {
			for _, result := range p.Results {
				if result.Code == "200" {
					done++
				}
			}
		}
	}
	if done != to-from {
		return 0, fmt.Errorf("%d of %d items are done: %.200s", done, to-from, answer)
	}
	return took, nil
}

var errNoAnswer = errors.New("no answer")

func (b *b7s) post(ctx context.Context, path string, request any) ([]byte, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, b.rest+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	ask.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(ask)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err) // the head does not say when it listens
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %.200s", path, response.Status, answer)
	}
	return answer, err
}

// stop ends the nodes.
func (b *b7s) stop() {
	if b.server != nil {
		_ = b.server.Close()
	}
	for _, n := range append([]*b7sNode{b.head}, b.workers...) {
		if n != nil {
			n.stop()
		}
	}
}

// start starts a node and waits until it works.
func (b *b7s) start(ctx context.Context, role string, args ...string) (*b7sNode, error) {
	dir := filepath.Join(b.dir, fmt.Sprint(role, len(b.workers)))
	_, key, err := ed25519.GenerateKey(nil)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	name := filepath.Join(dir, "key")
	if err == nil {
		const header = "\x08\x01\x12\x40" // libp2p's protobuf: Ed25519, 64 bytes
		err = os.WriteFile(name, append([]byte(header), key...), 0o600)
	}
	if err != nil {
		return nil, err
	}
	n, err := startB7S(b.program, dir, append([]string{"--role", role, "--address", "127.0.0.1", "--port", "0",
		"--private-key", name, "--workspace", filepath.Join(dir, "workspace"), "--db", filepath.Join(dir, "db")}, args...))
	if err != nil {
		return nil, err
	}
	var created struct{ Addresses []string }
	line := n.await(ctx, b7sStart, `"created host"`)
	if err := json.Unmarshal([]byte(line), &created); err != nil || len(created.Addresses) == 0 ||
		n.await(ctx, b7sStart, "starting node main loop") == "" {
		n.stop()
		return nil, fmt.Errorf("%s does not start as %s:\n%s", b.program, role, n.tail())
	}
	n.address, _, _ = strings.Cut(created.Addresses[0], " ")
	return n, nil
}
