//go:build linux

package b7s

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"github.com/FerretDB/FerretDB/ferretdb"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// ferret is a server that speaks MongoDB's protocol.
type ferret struct{ dir, uri string }

// startFerret starts a server that ends with the test.
func startFerret(t *testing.T) ferret {
	t.Helper()
	dir := t.TempDir()
	server, err := ferretdb.New(&ferretdb.Config{
		Listener: ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Handler:  "sqlite", SQLiteURL: "file:" + dir + "/",
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	address, err := url.Parse(server.MongoDBURI())
	require.NoError(t, err)
	return ferret{dir: dir, uri: "mongodb://" + startTurns(t, address.Host) + "/"}
}

// indexKeys makes the server find a document that it changes without reading
// all of the collection: its own index is of another expression.
func (f ferret) indexKeys(t *testing.T, database string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, database+".sqlite")+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'b7s%'`)
	require.NoError(t, err)
	var tables []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, tables)
	for _, name := range tables {
		_, err := db.ExecContext(t.Context(),
			fmt.Sprintf("CREATE INDEX %q ON %q (_ferretdb_sjson->'$._id')", name+"_keys", name))
		require.NoError(t, err)
	}
}

// turns passes one request at a time on to a server whose updates are not
// atomic by themselves, and keeps validators from it, which it refuses.
type turns struct {
	server  string
	turn    sync.Mutex
	running sync.WaitGroup
	mu      sync.Mutex
	open    []net.Conn
}

func startTurns(t *testing.T, server string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &turns{server: server}
	s.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			s.running.Go(func() { s.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, c := range s.open {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return listener.Addr().String()
}

func (s *turns) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", s.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	s.mu.Lock()
	s.open = append(s.open, client, server)
	s.mu.Unlock()
	for {
		request, err := readMessage(client)
		if err != nil {
			return
		}
		answer, err := s.exchange(server, withoutValidator(request))
		if err != nil {
			return
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

func (s *turns) exchange(server net.Conn, request []byte) ([]byte, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// readMessage reads a message of MongoDB's protocol, which begins with its size.
func readMessage(from io.Reader) ([]byte, error) {
	const least, most = 16, 64 << 20
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head)
	if size < least || size > most {
		return nil, io.ErrUnexpectedEOF
	}
	whole := make([]byte, size)
	copy(whole, head)
	_, err := io.ReadFull(from, whole[len(head):])
	return whole, err
}

// withoutValidator is a request without the validator of a new collection.
func withoutValidator(request []byte) []byte {
	const (
		codeAt = 12
		code   = 2013
		bodyAt = 16 + 4 + 1
	)
	var body, kept bson.D
	if len(request) < bodyAt || binary.LittleEndian.Uint32(request[codeAt:]) != code ||
		bson.Unmarshal(request[bodyAt:], &body) != nil || len(body) == 0 || body[0].Key != "create" {
		return request
	}
	for _, e := range body {
		if e.Key != "validator" {
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
