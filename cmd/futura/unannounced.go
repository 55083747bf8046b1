package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/internal/clock"
)

// announceAgain is how often a process tries to write its endpoint where there was no room for it.
const announceAgain = 2 * time.Second

// cantWrite reports whether err says that a file system takes no writes: it is full, or mounted read-only. What
// is only read still works then.
func cantWrite(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// announceIn writes the endpoint into the store's directory. Where there is no room for it, that is a warning, and it
// is written once there is.
func (n *node) announceIn(dir string, e *endpoint) error {
	path := filepath.Join(dir, endpointFile)
	err := e.write(dir)
	if !cantWrite(err) {
		return err
	}
	_ = os.Remove(path) // one of a process that was killed
	n.warnOfNoRoom(path, e, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for clock.Sleep(ctx, clock.Real{}, announceAgain) == nil {
			if e.write(dir) == nil {
				n.log.Info("there is room again: commands find this process by its store", "file", path)
				return
			}
		}
	}()
	n.unannounce = func() { cancel(); <-done }
	return nil
}

// warnOfNoRoom says what others don't find, and what to do.
func (n *node) warnOfNoRoom(path string, e *endpoint, err error) {
	commands, others := "those of this user find it by the user's caches", "reach the store by its socket"
	if n.here == nil {
		commands = "give them --url " + e.URL
	}
	if n.hasNoSocket(e) {
		others = "can't reach the store: free some space or mount it writable, and start this process again"
	}
	n.log.Warn("the store's directory takes no files: it does not say where this process is",
		"commands over HTTP", commands, "other processes", others, "file", path, "error", err)
}

// hasNoSocket reports whether other processes can't reach a store that they need this one for.
func (n *node) hasNoSocket(e *endpoint) bool {
	_, isShared := n.db.(*sharing.Database)
	return isShared && e.Store == ""
}
