package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/internal/trust"
)

// A store says nothing of the heads that run on it, and only the directory of an embedded store
// has an endpoint. So each head leaves its own among the caches of its user, under the names
// that its store has, where commands of that user on that machine find it. It holds a lock on
// that file for as long as it lives: no token is sent to a port that another process took
// after the head was killed.

const (
	// headsDir has the endpoints of heads, below the user's caches.
	headsDir = "futura/heads"
	// foreignAge is after which time the endpoint goes of a head on another machine that holds no lock here: where
	// directories of users come over a network, locks may not.
	foreignAge = 30 * 24 * time.Hour
)

// headHere is the endpoint of a head on this machine.
type headHere struct {
	endpoint
	// Stores are keys of its store, which hold in every directory.
	Stores []string `json:"stores"`
	// Host is the machine's name: the directories of users may be on several.
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
}

// storeKey is what all names of one store have in common that processes of this machine use.
// It is empty for a store that no other process reaches.
func storeKey(store string) string {
	if dir, ok := storeDir(store); ok {
		return "directory:" + dir
	}
	kind, rest, _ := strings.Cut(store, ":")
	switch {
	case kind == "memory":
		return ""
	case kind == "fdb" && rest != "":
		if path, err := filepath.Abs(rest); err == nil {
			return "fdb:" + path
		}
	}
	name, _, _ := strings.Cut(store, "?")
	return name
}

// storeDir is the directory of an embedded store, also of one that another process serves on
// the socket in it.
func storeDir(store string) (dir string, ok bool) {
	if path, isSocket := strings.CutPrefix(store, "remote:unix:"); isSocket {
		path, _, _ = strings.Cut(path, "?")
		if filepath.Base(path) != socketName {
			return "", false
		}
		dir, ok = filepath.Dir(path), true
	} else if dir, ok = embeddedDir(store); !ok {
		return "", false
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir, true
}

// headsPath is the directory of endpoints, which only this user may change.
func headsPath() (string, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(caches, filepath.FromSlash(headsDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, trust.Directory(dir)
}

// leaveHere leaves an endpoint for commands of this user that give its store one of these names,
// and returns what takes it away. It removes those of heads that were killed, on other machines after foreignAge.
func leaveHere(h *headHere, names ...string) (remove func() error, err error) {
	for _, name := range names {
		if key := storeKey(name); key != "" {
			h.Stores = append(h.Stores, key)
		}
	}
	dir, err := headsPath()
	if err != nil {
		return nil, err
	}
	if h.Host, err = os.Hostname(); err != nil {
		return nil, err
	}
	for _, path := range headFiles(dir) {
		if _, err := readHead(path, h.Host); errors.Is(err, errDead) {
			_ = os.Remove(path) // another head may do it at the same time
		}
	}
	content, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "head-*.new") // mode 0600
	if err != nil {
		return nil, err
	}
	path := strings.TrimSuffix(f.Name(), ".new") + ".json"
	_, err = f.Write(append(content, '\n'))
	if err = errors.Join(err, lockFile(f)); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return func() error {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return errors.Join(err, f.Close())
	}, nil
}

// headFiles are the files of endpoints in a directory.
func headFiles(dir string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, "head-*.json"))
	if err != nil { // the directory's name is no pattern
		return nil
	}
	return paths
}

// errDead is returned for the endpoint of a head that ended.
var errDead = errors.New("its head has ended")

// readHead returns the endpoint of a head that lives on a machine. It returns errDead for one that has ended.
func readHead(path, host string) (*headHere, error) {
	content, err := trust.ReadSecret(path, maxEndpoint)
	if err != nil {
		return nil, err
	}
	h := &headHere{}
	if err := json.Unmarshal(content, h); err != nil {
		return nil, err
	}
	foreign := h.Host != host
	if foreign && time.Since(h.Started) < foreignAge {
		return nil, fmt.Errorf("%s is of a head on %.100q", path, h.Host)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	held := isLocked(f)
	if err := f.Close(); err != nil {
		return nil, err
	}
	if !held {
		return nil, errDead
	}
	if foreign {
		return nil, fmt.Errorf("%s is of a head that lives on %.100q", path, h.Host)
	}
	return h, checkLocal(h.URL)
}

// headsOf returns the heads of a store and cluster that this user runs on this machine, the
// newest first.
func headsOf(store, cluster string) (found []*headHere) {
	dir, err := headsPath()
	if err != nil {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil
	}
	key := storeKey(store)
	for _, path := range headFiles(dir) {
		h, err := readHead(path, host)
		if err == nil && key != "" && h.Cluster == cluster && slices.Contains(h.Stores, key) {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *headHere) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.URL, b.URL))
	})
	return found
}

// findHead returns the endpoint of a head of the store and cluster: that of the process which serves its
// directory, or the newest that this user runs on this machine. With peers it is one that takes
// peers, if there is any.
func (a *app) findHead(peers bool) (endpoint, error) {
	var found []endpoint
	for _, h := range headsOf(a.store, a.cluster) {
		found = append(found, h.endpoint)
	}
	dir, isDir := storeDir(a.store)
	var failure error
	if isDir {
		var e endpoint
		if e, failure = readEndpoint(dir); failure == nil && !e.isLive() {
			failure = errDead // it was killed, and its file stays
		}
		if failure == nil && e.Cluster != "" && e.Cluster != a.cluster {
			failure = fmt.Errorf("%s serves cluster %s, and not cluster %s", e.URL, e.Cluster, a.cluster)
		}
		if failure == nil {
			at := slices.IndexFunc(found, func(x endpoint) bool { return x.URL == e.URL })
			if at >= 0 {
				found = slices.Insert(slices.Delete(found, at, at+1), 0, e)
			} else {
				found = append(found, e)
			}
		}
	}
	if peers {
		slices.SortStableFunc(found, func(x, y endpoint) int {
			return cmp.Compare(min(len(y.Peers), 1), min(len(x.Peers), 1))
		})
	}
	switch {
	case len(found) > 0:
		return found[0], nil
	case isDir && !errors.Is(failure, fs.ErrNotExist):
		return endpoint{}, usageError{fmt.Errorf("no process serves %s (%w): start futura dev, or name a head with --url",
			a.store, failure)}
	default:
		return endpoint{}, usageError{fmt.Errorf("no head of %s runs here as this user: start futura head or dev, or name "+
			"one elsewhere with --url", a.store)}
	}
}
