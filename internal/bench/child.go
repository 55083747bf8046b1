package bench

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
	"strings"

	"github.com/futura-run/futura/workers/objects"
	"github.com/futura-run/futura/workers/objects/peer"
)

// childDir makes a process hold objects for a benchmark, with its socket in a
// directory.
const childDir = "FUTURA_BENCH_OBJECTS"

var canStartChild bool

// ChildMain makes a program able to start itself anew as another process of a
// benchmark. main calls it before anything else. In that process it does not
// return.
func ChildMain() {
	canStartChild = true
	dir, store, owned := os.Getenv(childDir), os.Getenv(childStore), os.Getenv(childOwner)
	var err error
	switch {
	case dir != "":
		err = holdObjects(dir, os.Stdin, os.Stdout)
	case store != "":
		err = work(store, os.Getenv(childCluster), os.Stdin, os.Stdout)
	case owned != "":
		err = own(owned, os.Stdin, os.Stdout)
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "futura:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// offer is what the other process says about itself.
type offer struct {
	Unix, TCP, Bare string
	Large, Small    objects.Ref
}

// holdObjects serves some objects, and bytes of no object, until in ends. Its
// first line is the token.
func holdObjects(dir string, in io.Reader, out io.Writer) (err error) {
	lines := bufio.NewReader(in)
	token, err := lines.ReadString('\n')
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	store, err := objects.Open(objects.Options{Memory: 64 << 20})
	if err != nil {
		cancel()
		return err
	}
	var says offer
	content := make([]byte, largeObject)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // it never fails
	says.Large, err = store.PutBytes(ctx, content, objects.PutOptions{})
	ended := make(chan error, 3)
	if err == nil {
		says.Small, err = store.PutBytes(ctx, content[:smallObject], objects.PutOptions{})
	}
	serving := 0
	serve := func(l net.Listener, failed error) net.Listener {
		if err = errors.Join(err, failed); err == nil {
			serving++
			o := peer.ServerOptions{Token: strings.TrimSpace(token), Puts: true}
			go func() { ended <- peer.Serve(ctx, l, store, o) }()
		}
		return l
	}
	unix, tcp := serve(peer.ListenUnix(dir, "b")), serve(net.Listen("tcp", "127.0.0.1:0"))
	bare, failed := net.Listen("tcp", "127.0.0.1:0")
	if err = errors.Join(err, failed); err == nil {
		serving++
		go func() { ended <- serveBare(bare, content) }()
		says.Unix, says.TCP, says.Bare = "unix:"+unix.Addr().String(), "tcp:"+tcp.Addr().String(), bare.Addr().String()
		err = json.NewEncoder(out).Encode(says)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, lines)
		err = errors.Join(err, bare.Close())
	}
	cancel()
	for range serving {
		err = errors.Join(err, <-ended)
	}
	return errors.Join(err, store.Close())
}

// serveBare answers each byte of the first connection with all of content.
func serveBare(l net.Listener, content []byte) error {
	c, err := l.Accept()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	if err != nil {
		return err
	}
	var one [1]byte
	for err == nil {
		if _, err = io.ReadFull(c, one[:]); err == nil {
			_, err = c.Write(content)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, c.Close())
}

// child is the other process of a benchmark, which ends with its input.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
}

// startChild starts the program anew, with these variables added to its environment.
func startChild(ctx context.Context, variables ...string) (*child, error) {
	if !canStartChild {
		return nil, errors.New("bench: the program can't start itself: its main must call bench.ChildMain")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.CommandContext(ctx, self)}
	c.command.Env = append(os.Environ(), variables...)
	c.command.Stderr = os.Stderr
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = c.command.StdoutPipe(); err != nil {
		return nil, err
	}
	return c, c.command.Start()
}

func (c *child) stop() error { return errors.Join(c.in.Close(), c.command.Wait()) }

// objectChild holds objects.
type objectChild struct {
	offer
	*child
}

func startObjectChild(ctx context.Context, dir, token string) (*objectChild, error) {
	other, err := startChild(ctx, childDir+"="+dir)
	if err != nil {
		return nil, err
	}
	c := &objectChild{child: other}
	if _, err = io.WriteString(c.in, token+"\n"); err == nil {
		err = json.NewDecoder(c.out).Decode(&c.offer)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}
