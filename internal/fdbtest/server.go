//go:build fdb

package fdbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Server is a FoundationDB server on a loopback address with its data in
// memory. Each has a cluster of its own.
type Server struct {
	dir         string
	clusterFile string
	process     *os.Process
	exited      chan struct{}
}

// Start starts a server and configures its database. It returns
// exec.ErrNotFound if fdbserver or fdbcli is not on the PATH.
func Start(ctx context.Context) (*Server, error) {
	binary, err := exec.LookPath("fdbserver")
	if err != nil {
		return nil, fmt.Errorf("fdbtest: %w", err)
	}
	cli, err := exec.LookPath("fdbcli")
	if err != nil {
		return nil, fmt.Errorf("fdbtest: %w", err)
	}
	dir, err := os.MkdirTemp("", "futura-fdbtest-")
	if err != nil {
		return nil, fmt.Errorf("fdbtest: %w", err)
	}
	s := &Server{dir: dir, clusterFile: filepath.Join(dir, "fdb.cluster"), exited: make(chan struct{})}
	if err := s.start(ctx, binary, cli); err != nil {
		return nil, errors.Join(fmt.Errorf("fdbtest: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, binary, cli string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.clusterFile, []byte("futura:test@"+address+"\n"), 0o600); err != nil {
		return err
	}
	command := exec.Command(binary,
		"--public-address", address, "--listen-address", "public", "--cluster-file", s.clusterFile,
		"--datadir", filepath.Join(s.dir, "data"), "--logdir", filepath.Join(s.dir, "logs"),
		"--knob_disable_posix_kernel_aio=1")
	if err := os.Mkdir(filepath.Join(s.dir, "logs"), 0o700); err != nil {
		return err
	}
	if err := s.run(command); err != nil {
		return err
	}
	return s.configure(ctx, cli)
}

// run starts the process from a thread that lives as long as the process does,
// so that it can be told to die with it.
func (s *Server) run(command *exec.Cmd) error {
	dieWithParent(command)
	output, err := os.Create(s.outputFile())
	if err != nil {
		return err
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
		close(s.exited)
	}()
	if err := <-started; err != nil {
		return err
	}
	s.process = command.Process
	return nil
}

func (s *Server) outputFile() string { return filepath.Join(s.dir, "output") }

// configure creates the database and waits until it answers.
func (s *Server) configure(ctx context.Context, cli string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	timeout := startTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	output, err := exec.CommandContext(ctx, cli, "-C", s.clusterFile, "--timeout", fmt.Sprint(int(timeout.Seconds())+1),
		"--exec", "configure new single memory; get started").CombinedOutput()
	if err == nil {
		return nil
	}
	select {
	case <-s.exited:
		said, err := os.ReadFile(s.outputFile())
		return errors.Join(fmt.Errorf("fdbserver ended: %s", strings.TrimSpace(string(said))), err)
	default:
		return fmt.Errorf("configure the database: %w: %s", err, strings.TrimSpace(string(output)))
	}
}

// ClusterFile returns the path of the cluster file. On a nil Server it skips t.
func (s *Server) ClusterFile(t testing.TB) string {
	if s == nil {
		t.Skip(skipped)
	}
	return s.clusterFile
}

// Stop ends the server and removes its files.
func (s *Server) Stop() error {
	if s.process != nil {
		// The process may have ended by itself.
		_ = s.process.Kill()
		<-s.exited
		s.process = nil
	}
	return os.RemoveAll(s.dir)
}

// freeAddress returns a loopback address that nobody listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
