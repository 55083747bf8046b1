package ferrettest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/FerretDB/FerretDB/ferretdb"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/batchtest"
	"github.com/futura-run/futura/batch/mongostore"
)

// startServer starts a server with a proxy before it, until the test ends. All
// documents that it was sent or has at the end are checked.
func startServer(t *testing.T) *proxy {
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
	p := startProxy(t, address.Host)
	p.dir = dir
	c := newChecker(t)
	p.set(func(p *proxy) { p.written = c.check })
	t.Cleanup(func() {
		p.set(func(p *proxy) { p.fault = nil })
		c.checkStored(t, p.uri())
	})
	return p
}

// indexKeys makes the server find documents by their keys alone without reading
// all of them: its own index is of another expression than its queries have.
func (p *proxy) indexKeys(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.dir, mongostore.DefaultDatabase+".sqlite")+
		"?_pragma=busy_timeout(10000)")
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

// patientOpen opens a store again while the server is late, as on a busy machine.
func patientOpen(ctx context.Context, o mongostore.Options) (*mongostore.Store, error) {
	for end := time.Now().Add(5 * time.Minute); ; {
		s, err := mongostore.Open(ctx, o)
		if !errors.Is(err, mongostore.ErrUnreachable) || time.Now().After(end) {
			return s, err
		}
	}
}

func open(t *testing.T, uri string) *mongostore.Store {
	s, err := patientOpen(t.Context(), mongostore.Options{URI: uri})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

func TestSuite(t *testing.T) {
	t.Parallel()
	var proxies sync.Map
	batchtest.Run(t, batchtest.Harness{
		Open: func(t *testing.T) batch.Store {
			p := startServer(t)
			s := open(t, p.uri())
			proxies.Store(batch.Store(s), p)
			return s
		},
		Reopen: func(t *testing.T, s batch.Store) batch.Store {
			p, ok := proxies.Load(s)
			require.True(t, ok)
			return open(t, p.(*proxy).uri())
		},
		Small: true,
	})
}
