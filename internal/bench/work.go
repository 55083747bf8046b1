package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// childStore and childCluster make a process work for a benchmark.
const (
	childStore   = "FUTURA_BENCH_STORE"
	childCluster = "FUTURA_BENCH_CLUSTER"
)

// What a process that works says.
const (
	isReady   = "ready"   // to begin
	isWorking = "working" // it has begun
)

// workChild is a process with a worker, which has an object store and begins when it is told to.
type workChild struct {
	*child
	lines *bufio.Reader
}

func startWorkChild(ctx context.Context, store, cluster string) (*workChild, error) {
	other, err := startChild(ctx, childStore+"="+store, childCluster+"="+cluster)
	if err != nil {
		return nil, err
	}
	c := &workChild{other, bufio.NewReader(other.out)}
	if err := c.expect(isReady); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// expect waits for a line.
func (c *workChild) expect(want string) error {
	line, err := c.lines.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != want {
		err = fmt.Errorf("bench: the worker says %.100q", line)
	}
	return err
}

// begin has the worker begin, which says isWorking then.
func (c *workChild) begin() error {
	_, err := io.WriteString(c.in, "begin\n")
	return err
}

// usage asks for what the worker has asked of the store since it began.
func (c *workChild) usage() (u Usage, err error) {
	if _, err = io.WriteString(c.in, "usage\n"); err != nil {
		return u, err
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(line, &u)
}

// work runs a worker from the first line of in until in ends. It answers each further line with its usage of
// the store.
func work(store, cluster string, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opened, err := kvopen.Open(ctx, store, kvopen.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	db := NewMeter(opened)
	client, err := futures.New(ctx, db, futures.Options{Cluster: cluster})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.Background())) }()
	w, err := workers.New(client, workers.Options{Name: "bench", Objects: workers.ObjectOptions{Memory: 8 << 20}})
	if err != nil {
		return err
	}
	if err := w.Register(noop, func(_ context.Context, args []byte) ([]byte, error) {
		return args[:min(len(args), argsSize)], nil
	}); err != nil {
		return err
	}
	told := bufio.NewScanner(in)
	if _, err := fmt.Fprintln(out, isReady); err != nil || !told.Scan() {
		return errors.Join(err, told.Err())
	}
	before, ended := db.Usage(), make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-ended:
		return err
	}
	_, err = fmt.Fprintln(out, isWorking)
	for err == nil && told.Scan() {
		err = json.NewEncoder(out).Encode(db.Usage().minus(before))
	}
	cancel()
	return errors.Join(err, told.Err(), <-ended)
}
