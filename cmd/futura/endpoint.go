package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/futura-run/futura/internal/trust"
)

// endpointFile lies in the directory of a store that a process serves.
const endpointFile = "endpoint.json"

// maxEndpoint bounds it, in bytes.
const maxEndpoint = 64 << 10

// endpoint tells other processes of the same user how to reach the one that has
// the store open.
type endpoint struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	PID   int    `json:"pid"`
	// Cluster is the one that it serves, empty in the file of an earlier version.
	Cluster string `json:"cluster,omitempty"`
	// Store is the name under which the store can be opened.
	Store string `json:"store"`
	// StoreTCP is the same for other machines, if it is served to them.
	StoreTCP string `json:"store_tcp,omitempty"`
	// Walls are what the kernel puts around the processes of functions.
	Walls []string `json:"walls,omitempty"`
	// Batches is where the batches are.
	Batches string `json:"batches,omitempty"`
	// Peers are the multiaddrs that peers reach the head at.
	Peers []string `json:"peers,omitempty"`
}

// embeddedDir returns the directory of an embedded store's name.
func embeddedDir(store string) (dir string, ok bool) {
	dir, ok = strings.CutPrefix(store, "embedded:")
	dir, _, _ = strings.Cut(dir, "?")
	return dir, ok
}

// write puts the endpoint where processes of this user, and no others, find
// it. A reader sees it whole or not at all.
func (e *endpoint) write(dir string) error {
	content, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return trust.WriteSecret(filepath.Join(dir, endpointFile), append(content, '\n'))
}

// readEndpoint returns the endpoint of the process that serves a directory's
// store, and fs.ErrNotExist if there is none.
func readEndpoint(dir string) (endpoint, error) {
	var e endpoint
	path := filepath.Join(dir, endpointFile)
	content, err := trust.ReadSecret(path, maxEndpoint)
	if err != nil {
		return e, err
	}
	if err = json.Unmarshal(content, &e); err == nil {
		err = checkLocal(e.URL)
	}
	if err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// isLive reports whether the process runs, as this user. Another one may have its address by now,
// and must not be given the token.
func (e *endpoint) isLive() bool {
	if e.PID <= 0 {
		return false
	}
	process, err := os.FindProcess(e.PID)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	// Windows knows no signals, and finds no process that has ended.
	return runtime.GOOS == "windows" || process.Signal(syscall.Signal(0)) == nil
}

// answers reports whether the process accepts connections.
func (e *endpoint) answers() bool {
	at, err := url.Parse(e.URL)
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", at.Host, time.Second)
	return err == nil && conn.Close() == nil
}

// checkLocal refuses the URL of another machine: a process that serves a
// directory is on this one.
func checkLocal(text string) error {
	at, err := url.Parse(text)
	if err != nil {
		return err
	}
	ip := net.ParseIP(at.Hostname())
	if ip == nil {
		return fmt.Errorf("%.100q does not begin with an address of this machine", text)
	}
	if ip.IsLoopback() || ip.IsUnspecified() {
		return nil
	}
	mine, err := net.InterfaceAddrs()
	for _, addr := range mine {
		if network, ok := addr.(*net.IPNet); ok && network.IP.Equal(ip) {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("%.100q is on another machine: if that is right, name it with --url", text))
}

// removeEndpoint takes the endpoint away, unless another process has replaced
// it.
func removeEndpoint(dir string) error {
	e, err := readEndpoint(dir)
	if err == nil && e.PID == os.Getpid() {
		err = os.Remove(filepath.Join(dir, endpointFile))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
