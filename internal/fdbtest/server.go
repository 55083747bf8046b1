//go:build fdb

package fdbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Server is a FoundationDB cluster on loopback addresses with its data in
// memory, and on disk for restarts. Each Server is a cluster of its own.
type Server struct {
	dir         string
	clusterFile string
	binary, cli string
	tls         bool
	env         []string // of the servers and of fdbcli
	processes   []*process
}

// Start starts a cluster of one process and configures its database. It returns
// exec.ErrNotFound if fdbserver or fdbcli is not on the PATH.
func Start(ctx context.Context) (*Server, error) { return StartMany(ctx, 1) }

// StartMany is Start with several processes, which all coordinate. From three
// on, the database survives the death of one.
func StartMany(ctx context.Context, processes int) (*Server, error) {
	return start(ctx, processes, &Server{env: os.Environ()})
}

// StartTLS is Start with a server that speaks TLS only. env are the FDB_TLS_
// variables of the server and of fdbcli; a process that opens the cluster needs
// its own.
func StartTLS(ctx context.Context, env []string) (*Server, error) {
	return start(ctx, 1, &Server{tls: true, env: append(os.Environ(), env...)})
}

func start(ctx context.Context, processes int, s *Server) (*Server, error) {
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
	s.dir, s.clusterFile, s.binary, s.cli = dir, filepath.Join(dir, "fdb.cluster"), binary, cli
	if err := s.start(ctx, processes); err != nil {
		return nil, errors.Join(fmt.Errorf("fdbtest: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, processes int) error {
	var addresses []string
	for i := range processes {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		if s.tls {
			address += ":tls"
		}
		addresses = append(addresses, address)
		dir := filepath.Join(s.dir, fmt.Sprint(i))
		s.processes = append(s.processes, &process{
			dir: dir, address: address, clusterFile: s.clusterFile, env: s.env,
		})
	}
	named := "futura:test@" + strings.Join(addresses, ",") + "\n"
	if err := os.WriteFile(s.clusterFile, []byte(named), 0o600); err != nil {
		return err
	}
	for _, p := range s.processes {
		if err := p.start(s.binary); err != nil {
			return err
		}
	}
	redundancy := "single"
	if processes >= 3 {
		redundancy = "double"
	}
	if err := s.command(ctx, "configure new "+redundancy+" memory"); err != nil {
		return err
	}
	// A new database may not serve its first read within the time that a transaction has.
	for again := 10; ; again-- {
		if err := s.command(ctx, "get started"); err == nil || again == 0 || ctx.Err() != nil {
			return err
		}
	}
}

// command has fdbcli run commands, and gives up when ctx or the first process
// ends.
func (s *Server) command(ctx context.Context, commands string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first, exited := s.processes[0], s.processes[0].exited // a restart makes a new one
	go func() {
		select {
		case <-exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	timeout := startTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	command := exec.CommandContext(ctx, s.cli, "-C", s.clusterFile, "--timeout",
		fmt.Sprint(int(timeout.Seconds())+1), "--exec", commands)
	command.Env = s.env
	output, err := command.CombinedOutput()
	if err == nil {
		return nil
	}
	if ended := first.ended(); ended != nil {
		return ended
	}
	return fmt.Errorf("fdbcli %q: %w: %s", commands, err, strings.TrimSpace(string(output)))
}

// Signal sends a signal to a process, counted from 0: SIGSTOP and SIGCONT stop it for a while.
func (s *Server) Signal(process int, signal os.Signal) error {
	if running := s.processes[process].running; running != nil {
		return running.Signal(signal)
	}
	return fmt.Errorf("fdbtest: server %d does not run", process)
}

// Kill ends a process, counted from 0, as kill -9 does.
func (s *Server) Kill(process int) { s.processes[process].kill() }

// Restart starts a process that was killed on what it left on its disk.
func (s *Server) Restart(process int) error {
	if err := s.processes[process].start(s.binary); err != nil {
		return fmt.Errorf("fdbtest: %w", err)
	}
	return nil
}

// Path returns the path of the cluster file.
func (s *Server) Path() string { return s.clusterFile }

// ClusterFile returns the path of the cluster file. On a nil Server it skips t.
func (s *Server) ClusterFile(t testing.TB) string {
	if s == nil {
		t.Skip(skipped)
	}
	return s.clusterFile
}

// Stop ends all processes and removes their files.
func (s *Server) Stop() error {
	for _, p := range s.processes {
		p.kill()
	}
	return os.RemoveAll(s.dir)
}
