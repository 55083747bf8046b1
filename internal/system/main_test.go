package system

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

func TestMain(m *testing.M) {
	wasm.ChildMain()
	for _, child := range []struct {
		variable string
		main     func(ctx context.Context, of string) error
	}{
		{killDirVariable, killedMain}, {ownerDirVariable, ownerMain}, {wordsStoreVariable, wordsMain},
		{lanesStoreVariable, lanesMain}, {peersStoreVariable, headMain}, {peersHeadVariable, peerMain},
		{largeStoreVariable, largeHeadMain}, {largeHeadVariable, largePeerMain},
	} {
		if of := os.Getenv(child.variable); of != "" {
			if err := child.main(context.Background(), of); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	storetest.Main(m)
}

// plant is a store with a cluster, a client, and workers.
type plant struct {
	t      *testing.T
	ctx    context.Context
	db     kv.Database
	client *futures.Client
}

func newPlant(t *testing.T, store string) *plant {
	db, err := kvopen.Open(context.Background(), store, kvopen.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return plantOn(t, db, "plant")
}

// plantOn opens a cluster on a store that others use too.
func plantOn(t *testing.T, db kv.Database, cluster string) *plant {
	return plantWith(t, db, cluster, 10*time.Second)
}

// plantWith says after how long a worker without a sign of life is dead.
func plantWith(t *testing.T, db kv.Database, cluster string, deadAfter time.Duration) *plant {
	p := &plant{t: t, ctx: context.Background(), db: db}
	var err error
	p.client, err = futures.New(p.ctx, db, futures.Options{
		Cluster: cluster, Config: layout.Config{Heartbeat: 200 * time.Millisecond, DeadAfter: deadAfter, Shards: 2},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.client.Close(p.ctx)) })
	return p
}

// start runs a worker until stop, or until the test ends.
func (p *plant) start(o workers.Options, functions map[string]workers.Function) (stop func()) {
	w, err := workers.New(p.client, o)
	require.NoError(p.t, err)
	for name, fn := range functions {
		require.NoError(p.t, w.Register(name, fn))
	}
	stop = storetest.Background(p.t, w.Run)
	<-w.Ready()
	return stop
}

// modules starts an executor that ends with the test.
func (p *plant) modules(config wasm.Config) workers.ModuleRunner {
	e, err := wasm.New(p.ctx, config)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, e.Close(p.ctx)) })
	return e
}

// put stores a module and returns its function.
func (p *plant) put(module []byte) string {
	m, err := modules.Of(p.client.Cluster()).Put(p.ctx, module, "")
	require.NoError(p.t, err)
	return "wasm:" + m.CID
}

// check asserts that nothing is broken.
func (p *plant) check() audit.Report {
	p.t.Helper()
	report, err := audit.Check(p.ctx, p.client.Cluster(), audit.Options{})
	require.NoError(p.t, err)
	require.Empty(p.t, report.Problems)
	return report
}

// awaitNoneOpen waits until every future of every client is over.
func (p *plant) awaitNoneOpen() {
	var cursor []byte
	for {
		rows, next, err := inspect.List(p.ctx, p.client.Cluster(), inspect.Filter{}, cursor, inspect.MaxList)
		require.NoError(p.t, err)
		var open []*futures.Future
		for i := range rows {
			if !rows[i].State().Terminal() {
				open = append(open, p.client.Future(rows[i].ID))
			}
		}
		_, err = p.client.AwaitAll(p.ctx, open)
		require.NoError(p.t, err)
		if cursor = next; len(next) == 0 {
			return
		}
	}
}

func echo(_ context.Context, args []byte) ([]byte, error) { return args, nil }

// openPlant opens the cluster of a store.
func openPlant(ctx context.Context, store string) (*futures.Client, error) {
	db, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return nil, err
	}
	return futures.New(ctx, db, futures.Options{Cluster: "plant"})
}

// startHead starts a head of peers, and returns what it ends with.
func startHead(ctx context.Context, c *futures.Client, network peerhead.Network, host *p2p.Host, key []byte,
) (ended chan error, err error) {
	peers, err := peerhead.New(peerhead.Options{Cluster: c.Cluster(), Network: network, Key: key})
	if err != nil {
		return nil, err
	}
	ended = make(chan error, 2)
	go func() { ended <- peers.Run(ctx) }()
	peers.Serve(host)
	return ended, host.Start()
}

// work runs a worker of a child process, and says when it is ready.
func work(ctx context.Context, w interface {
	Ready() <-chan struct{}
	Run(ctx context.Context) error
}) error {
	go func() {
		<-w.Ready()
		fmt.Println("ready")
	}()
	return w.Run(ctx)
}
