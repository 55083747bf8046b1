package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerworker"
)

// Variables of the processes of a test of peers: a head's store, and a peer's head.
const (
	peersStoreVariable = "FUTURA_PEERS_STORE"
	peersKeyVariable   = "FUTURA_PEERS_KEY"
	peersHeadVariable  = "FUTURA_PEERS_HEAD"
	peersStateVariable = "FUTURA_PEERS_STATE"
)

const peersKey = "the batch of the test"

// peersRequest is the batch: items of go:peer, each with a number.
func peersRequest(items int) batch.Request {
	r := batch.Request{Key: peersKey, MaxAttempts: 10, Template: batch.Template{
		FunctionID: "go:peer", Config: batch.Config{Nodes: -1, Concurrency: 1 << 16},
	}}
	for i := range items {
		r.Arguments = append(r.Arguments, []string{fmt.Sprint(i)})
	}
	return r
}

// headMain is the process of a head that takes peers, until it is killed. It makes the
// batch, or finds that one before it did.
func headMain(ctx context.Context, store string) error {
	client, host, key, err := openHead(ctx, store, os.Getenv(peersKeyVariable))
	if err != nil {
		return err
	}
	ended, err := startHead(ctx, client, host, host, key)
	if err != nil {
		return err
	}
	h := head.New(head.Options{
		Store:      futurestore.New(client.Cluster(), futurestore.Options{}),
		Dispatcher: head.NewCluster(client.Cluster()), BootDelay: time.Second, Look: 50 * time.Millisecond,
	})
	go func() { ended <- h.Run(ctx) }()
	if _, _, err := h.Submit(ctx, peersRequest(peersItems())); err != nil {
		return err
	}
	fmt.Println(host.Addrs()[0])
	return <-ended
}

// openHead opens what a head needs: a client of the store, and a host with the key in a file.
func openHead(ctx context.Context, store, keyFile string) (*futures.Client, *p2p.Host, []byte, error) {
	client, err := openPlant(ctx, store)
	if err != nil {
		return nil, nil, nil, err
	}
	key, err := p2p.LoadKey(keyFile)
	if err != nil {
		return nil, nil, nil, err
	}
	host, err := p2p.Open(ctx, p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	return client, host, key, err
}

func peersItems() int {
	if os.Getenv("FUTURA_LONG") != "" {
		return 1000
	}
	return 300
}

// peerMain is the process of a peer, until it is killed.
func peerMain(ctx context.Context, headAddress string) error {
	w, err := peerworker.New(peerworker.Options{
		Heads: []string{headAddress}, Slots: 4, State: os.Getenv(peersStateVariable), KeyFile: os.Getenv(peersKeyVariable),
		RedialMax: time.Second,
	})
	if err != nil {
		return err
	}
	err = w.Register("peer", func(_ context.Context, args []byte) ([]byte, error) {
		var arguments []string
		if err := json.Unmarshal(args, &arguments); err != nil {
			return nil, err
		}
		timer := time.NewTimer(time.Duration(rand.IntN(20)) * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		if rand.IntN(20) == 0 {
			return nil, errors.New("every twentieth run fails")
		}
		return []byte("ran " + arguments[0]), nil
	})
	if err != nil {
		return err
	}
	return work(ctx, w)
}

// peersProcess is a process of the test.
type peersProcess struct {
	command *exec.Cmd
	out     io.Reader
	line    string // the first that it printed
}

func startPeersProcess(t *testing.T, variables ...string) *peersProcess {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), variables...), os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	p := &peersProcess{command: c, out: out}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	p.line = strings.TrimSpace(line)
	return p
}

// kill ends the process with SIGKILL.
func (p *peersProcess) kill() {
	if p.command.ProcessState != nil {
		return
	}
	_ = p.command.Process.Kill()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.command.Wait()
}

// gap is a way to a head that can be cut, and that leads to the next head when one is killed: nobody has to listen
// where another one did, which may be taken meanwhile.
type gap struct {
	listener net.Listener

	mu    sync.Mutex
	to    string // nothing until it leads somewhere
	cut   bool
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
}

func newGap(t *testing.T) *gap {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gap{listener: l, conns: map[net.Conn]struct{}{}}
	g.wg.Go(g.accept)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		g.set(true)
		g.wg.Wait()
	})
	return g
}

func (g *gap) accept() {
	for {
		c, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		to := g.to
		g.mu.Unlock()
		far, err := net.Dial("tcp", to)
		if err != nil || !g.add(c, far) {
			_ = c.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		for _, way := range [][2]net.Conn{{c, far}, {far, c}} {
			g.wg.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
				_ = way[1].Close()
			})
		}
	}
}

func (g *gap) add(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut {
		return false
	}
	for _, c := range conns {
		g.conns[c] = struct{}{}
	}
	return true
}

// lead has the way lead to a head from now on, and returns the address of the head by this way.
func (g *gap) lead(head string) (address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	parts := strings.Split(head, "/") // as of /ip4/127.0.0.1/tcp/1/p2p/12D3
	g.to = net.JoinHostPort(parts[2], parts[4])
	_, parts[4], _ = net.SplitHostPort(g.listener.Addr().String())
	return strings.Join(parts, "/")
}

// set cuts the way, or heals it.
func (g *gap) set(cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = cut
	if cut {
		for c := range g.conns {
			_ = c.Close()
		}
		clear(g.conns)
	}
}

// evil is a peer that takes orders and does with them what it likes. It returns how many
// it was given.
func evil(t *testing.T, headAddress string,
	answer func(h *p2p.Host, to p2p.PeerID, o *protocol.WorkOrderBatch),
) func() int {
	t.Helper()
	ctx := context.Background()
	host, err := p2p.Open(ctx, p2p.Options{Listen: []string{}})
	require.NoError(t, err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	orders := 0
	host.OnCall(func(_ context.Context, from p2p.PeerID, message []byte) []byte {
		if m, err := protocol.Decode(message); err == nil {
			if o, ok := m.(*protocol.WorkOrderBatch); ok {
				mu.Lock()
				orders++
				mu.Unlock()
				wg.Go(func() { answer(host, from, o) })
			}
		}
		data, _ := protocol.Encode(&protocol.Ack{Code: protocol.CodeAccepted}, protocol.DialectFutura)
		return data
	})
	require.NoError(t, host.Start())
	t.Cleanup(func() {
		require.NoError(t, host.Close())
		wg.Wait()
	})
	to, err := host.Connect(ctx, headAddress)
	require.NoError(t, err)
	hello, err := protocol.Encode(&protocol.Hello{Incarnation: "0123456789abcdef", Functions: []string{"go:peer"},
		Capacity: protocol.Capacity{Slots: 4, CPUMillis: 4000, RAMBytes: 1 << 30}}, protocol.DialectFutura)
	require.NoError(t, err)
	_, err = host.Call(ctx, to, hello)
	require.NoError(t, err)
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return orders
	}
}

// garble sends what is no message, and messages that end nowhere.
func garble(h *p2p.Host, to p2p.PeerID, o *protocol.WorkOrderBatch) {
	for _, text := range []string{"", "{", "\x00\xff", `{"type":"MsgWorkOrderBatchResponse"}`, `{"type":"Nothing"}`,
		`{"type":"MsgHello","incarnation":"x"}`, strings.Repeat("[", 100_000), strings.Repeat("a", 1<<20),
		`{"type":"MsgWorkOrderBatchResponse","request_id":"` + o.ChunkID + `","chunk_id":"` + o.ChunkID +
			`","outcomes":[{"index":0,"code":"200","value":"!"}]}`,
	} {
		_, _ = h.Call(context.Background(), to, []byte(text))
		_ = h.Send(context.Background(), to, []byte(text))
	}
}

// lie answers for places, chunks and items that it was not given.
func lie(h *p2p.Host, to p2p.PeerID, o *protocol.WorkOrderBatch) {
	lie := protocol.Outcome{Code: protocol.CodeOK, Value: []byte("lie")}
	far := lie
	far.Index = len(o.Arguments)
	others := []protocol.OrderItem{{ID: o.ChunkID, Attempt: 1}}
	for _, r := range []protocol.WorkOrderBatchResponse{
		{ChunkID: o.ChunkID, OrderMAC: "no", Outcomes: []protocol.Outcome{lie}},
		{ChunkID: o.ChunkID, OrderMAC: o.OrderMAC, Outcomes: []protocol.Outcome{far}},
		{ChunkID: "abcd", OrderMAC: o.OrderMAC, Outcomes: []protocol.Outcome{lie}, Items: o.Items},
		{ChunkID: "abcd", OrderMAC: o.OrderMAC, Outcomes: []protocol.Outcome{lie}, Items: others},
	} {
		r.RequestID = r.ChunkID
		if data, err := protocol.Encode(&r, protocol.DialectFutura); err == nil {
			_, _ = h.Call(context.Background(), to, data)
		}
	}
}

// TestBatchOnTroubledPeers runs a batch on three peers behind a head, all processes of
// their own: one peer is killed and comes back, one is cut off and healed, and the head is
// killed midway. Two more peers take items and answer with garbage, and for what they were
// not given. Each item ends exactly once, with its own result.
func TestBatchOnTroubledPeers(t *testing.T) {
	db, store := storetest.Shared(t)
	p := plantWith(t, db, "plant", 2*time.Second)
	dir := t.TempDir()
	whole, cut := newGap(t), newGap(t)
	startHead := func() (head *peersProcess, address string) {
		head = startPeersProcess(t, peersStoreVariable+"="+store, peersKeyVariable+"="+filepath.Join(dir, "head.key"))
		return head, whole.lead(head.line)
	}
	first, address := startHead()
	startPeer := func(name, address string) *peersProcess {
		return startPeersProcess(t, peersHeadVariable+"="+address, peersKeyVariable+"="+filepath.Join(dir, name+".key"),
			peersStateVariable+"="+filepath.Join(dir, name))
	}
	garbled := evil(t, address, garble)
	lied := evil(t, address, lie)
	killed := startPeer("killed", address)
	startPeer("cut", cut.lead(address))
	startPeer("plain", address)

	batches := futurestore.New(p.client.Cluster(), futurestore.Options{})
	progress := func() (b batch.Batch, done batch.Progress) {
		list, err := batches.List(p.ctx, false, "", 1)
		require.NoError(t, err)
		require.Len(t, list, 1)
		done, err = batches.Progress(p.ctx, list[0].ID)
		require.NoError(t, err)
		return list[0], done
	}
	n := peersItems()
	await := func(most int) {
		require.Eventually(t, func() bool {
			b, done := progress()
			return done[batch.Done] >= most || b.Status.Over()
		}, 2*time.Minute, 10*time.Millisecond)
	}
	await(n / 6)
	killed.kill()
	await(n / 3)
	cut.set(true)
	killed = startPeer("killed", address)
	await(n / 2)
	first.kill()
	startHead()
	await(2 * n / 3)
	cut.set(false)
	var b batch.Batch
	require.Eventually(t, func() bool { b, _ = progress(); return b.Status.Over() }, 4*time.Minute, 20*time.Millisecond)
	require.Equal(t, batch.Done, b.Status, "%+v", b)
	require.NotZero(t, garbled(), "it was given something")
	require.NotZero(t, lied(), "it was given something")
	seen := 0
	for from := 0; from < n; from += 100 {
		items, err := batches.Items(p.ctx, b.ID, from, 100)
		require.NoError(t, err)
		for _, item := range items {
			require.Equal(t, batch.Done, item.Status)
			require.Equal(t, "ran "+item.Arguments[0], item.Result.Stdout)
			seen++
		}
	}
	require.Equal(t, n, seen)
	p.check()
}
