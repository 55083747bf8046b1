package system

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol/p2p"
)

// killedNetwork is a host whose process is killed once it has taken a number of bytes.
type killedNetwork struct {
	*p2p.Host
	takes, came int64
}

func (n *killedNetwork) FetchBlob(ctx context.Context, from p2p.PeerID, id string, w io.Writer, o p2p.FetchOptions,
) error {
	return n.Host.FetchBlob(ctx, from, id, writerOf(func(b []byte) (int, error) {
		written, err := w.Write(b)
		if n.came += int64(written); n.takes > 0 && n.came >= n.takes {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {}
		}
		return written, err
	}), o)
}

type writerOf func([]byte) (int, error)

func (w writerOf) Write(b []byte) (int, error) { return w(b) }

// killedHeadMain is the process of a head that is killed while it takes a large result, or
// of the next one, which says the hash of the result, and how many bytes came.
func killedHeadMain(ctx context.Context, store, after string) error {
	takes, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return err
	}
	client, host, key, err := openHead(ctx, store, os.Getenv(largeKeyVariable))
	if err != nil {
		return err
	}
	network := &killedNetwork{Host: host, takes: takes}
	ended, err := startHead(ctx, client, network, host, key)
	if err != nil {
		return err
	}
	fmt.Println(host.Addrs()[0])
	id, err := largeFuture(ctx, client.Cluster())
	if err != nil {
		return err
	}
	sum, err := largeSum(ctx, client.Future(id))
	if err != nil {
		return err
	}
	fmt.Printf("%x %d\n", sum, network.came)
	return <-ended
}

// largeFuture submits the future, unless an earlier process has, and waits until it is over.
func largeFuture(ctx context.Context, cluster *fdbmodel.Cluster) (id layout.ID, err error) {
	id = layout.BatchItemID("large", 0)
	_, err = cluster.Submit(ctx, []fdbmodel.Submission{
		{ID: id, Spec: layout.Spec{Function: "go:large", Codec: layout.CodecRaw}}})
	if err != nil {
		return id, err
	}
	for {
		row, err := cluster.Get(ctx, id)
		if err != nil {
			return id, err
		}
		if ending := row.Ending(); ending.Over() {
			return id, nil
		}
		if err := clock.Sleep(ctx, clock.Real{}, 10*time.Millisecond); err != nil {
			return id, err
		}
	}
}

// TestAHeadThatIsKilledGoesOnWithALargeResult kills a head that has taken half of a result,
// and the next one after another quarter. What the last one takes is the rest, and what each
// had not stored yet, up to a megabyte.
func TestAHeadThatIsKilledGoesOnWithALargeResult(t *testing.T) {
	if os.Getenv("FUTURA_LONG") == "" {
		t.Skip("set FUTURA_LONG=1 to kill heads, whose peers wait half a minute")
	}
	want := sha256.New()
	for i := range largeSize() / largePart {
		_, _ = want.Write(largePiece(i)) // never fails
	}
	dir := t.TempDir()
	way := newGap(t)
	start := func(takes int) (head *peersProcess, address string) {
		head = startPeersProcess(t, largeStoreVariable+"=embedded:"+filepath.Join(dir, "store"),
			largeKeyVariable+"="+filepath.Join(dir, "key"), fmt.Sprintf("%s=%d", largeTakesVariable, takes))
		return head, way.lead(head.line)
	}
	head, address := start(largeSize() / 2)
	startPeersProcess(t, largeHeadVariable+"="+address, largeStateVariable+"=")
	requireKilled(t, head)
	head, _ = start(largeSize() / 4)
	requireKilled(t, head)
	head, _ = start(0)
	var sum string
	var came int
	_, err := fmt.Fscan(bufio.NewReader(head.out), &sum, &came)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%x", want.Sum(nil)), sum)
	t.Logf("of %d bytes %d came after the second head was killed", largeSize(), came)
	require.Less(t, came, largeSize()/4+3<<20)
	require.NotZero(t, came)
}

// requireKilled waits until a process is killed.
func requireKilled(t *testing.T, p *peersProcess) {
	t.Helper()
	_, err := io.Copy(io.Discard, p.out)
	require.NoError(t, err)
	require.ErrorContains(t, p.command.Wait(), "killed")
}
