//go:build fdb

package fdbtest

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// process is one fdbserver.
type process struct {
	dir, address, clusterFile string
	env                       []string

	running *os.Process
	exited  chan struct{}
}

func (p *process) outputFile() string { return filepath.Join(p.dir, "output") }

// start runs the server, for the first time or again, from a thread that lives
// as long as it does, so that it can be told to die with it.
func (p *process) start(binary string) error {
	if err := os.MkdirAll(filepath.Join(p.dir, "logs"), 0o700); err != nil {
		return err
	}
	command := exec.Command(binary,
		"--public-address", p.address, "--listen-address", "public", "--cluster-file", p.clusterFile,
		"--datadir", filepath.Join(p.dir, "data"), "--logdir", filepath.Join(p.dir, "logs"),
		// Copies of data go to different zones only.
		"--locality-zoneid", p.address, "--locality-machineid", p.address,
		"--knob_disable_posix_kernel_aio=1")
	command.Env = p.env
	dieWithParent(command)
	output, err := os.OpenFile(p.outputFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	p.exited = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return err
	}
	p.running = command.Process
	return nil
}

// kill ends the process, without a word to it, and waits for its end.
func (p *process) kill() {
	if p.running != nil {
		// It may have ended by itself.
		_ = p.running.Kill()
		<-p.exited
		p.running = nil
	}
}

// ended returns what the process said if it has ended, nil if it runs.
func (p *process) ended() error {
	select {
	case <-p.exited:
		said, err := os.ReadFile(p.outputFile())
		return errors.Join(errors.New("fdbserver ended: "+strings.TrimSpace(string(said))), err)
	default:
		return nil
	}
}

// freeAddress returns a loopback address that is not in use, with a port below those
// that systems give to connections: none of them takes it before the server listens
// there, or while the server is down between two starts.
func freeAddress() (string, error) {
	const first, ports, tries = 10_000, 22_000, 100
	var failed error
	for range tries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(ports)))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		failed = err
	}
	return "", failed
}
