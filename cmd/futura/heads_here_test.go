package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// takesPeers asks for peers of the head of a store, and reports whether it takes any.
func takesPeers(t *testing.T, store string, args ...string) bool {
	t.Helper()
	s := &shell{t, store}
	var answer struct {
		Takes bool `json:"takes_peers"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok(append([]string{"peers", "--json"}, args...)...)), &answer))
	return answer.Takes
}

// TestHeadsAreFoundByEveryNameOfTheirStore has a process serve a store on a socket and over TCP,
// and a second head with peers use it: peers finds that one by all names, and the first once
// it has ended.
func TestHeadsAreFoundByEveryNameOfTheirStore(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	e, _, _ := startDev(t, "--store", s.store, "--store-listen", "127.0.0.1:0")
	_, log, stop := startHead(t, "--store", e.Store, "--any-peer", "--peers", "/ip4/127.0.0.1/tcp/0", "--peer-key",
		filepath.Join(t.TempDir(), "key"))
	require.True(t, takesPeers(t, s.store))
	require.True(t, takesPeers(t, e.Store))
	require.False(t, takesPeers(t, e.Store, "--url", e.URL, "--token-file", tokenFileOf(t, e.Token)))
	require.False(t, takesPeers(t, e.StoreTCP), "that is the name of the first alone")
	require.Equal(t, exitOK, stop(), "%s", log)
	require.False(t, takesPeers(t, s.store))
	nowhere := &shell{t, "remote:unix:" + filepath.Join(t.TempDir(), "x")}
	_, errOut := nowhere.run(exitUsage, "", "peers")
	require.Contains(t, errOut, "--url")
}

// TestAHeadOfAStoreThatAnotherProcessServes has the key beside the store, which one head at a time may use.
func TestAHeadOfAStoreThatAnotherProcessServes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	startDev(t, "--store", s.store)
	flags := []string{"--store", s.store, "--any-peer", "--peers", "/ip4/127.0.0.1/tcp/0"}
	_, log, stop := startHead(t, flags...)
	dir, _ := embeddedDir(s.store)
	require.FileExists(t, filepath.Join(dir, "peer.key"))
	_, errOut := s.run(exitStore, "", append([]string{"head", "--open", "--rest-api", "127.0.0.1:0"}, flags[2:]...)...)
	require.Contains(t, errOut, "another head runs with the key")
	require.Contains(t, errOut, "--peer-key")
	require.Equal(t, exitOK, stop(), "%s", log)
	_, log, stop = startHead(t, flags...)
	require.Equal(t, exitOK, stop(), "%s", log)
}

func tokenFileOf(t *testing.T, token string) string {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
	return path
}

// TestAHeadOfAStoreInMemoryIsFound by the name that others have for it.
func TestAHeadOfAStoreInMemoryIsFound(t *testing.T) {
	t.Parallel()
	e, _, _ := startHead(t, "--store", "memory:", "--any-peer", "--peers", "/ip4/127.0.0.1/tcp/0", "--peer-key",
		filepath.Join(t.TempDir(), "key"))
	require.True(t, takesPeers(t, e.Store))
	(&shell{t, "memory:"}).run(exitUsage, "", "peers")
}

// TestNamesOfStores are one for each store.
func TestNamesOfStores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	one := storeKey("embedded:" + dir)
	for _, name := range []string{"embedded:" + dir + "/", "embedded:" + dir + "?cache=1", "embedded:" + link,
		"remote:unix:" + filepath.Join(dir, socketName), "remote:unix:" + filepath.Join(link, socketName)} {
		require.Equal(t, one, storeKey(name), name)
	}
	for _, name := range []string{"embedded:" + dir + "x", "remote:unix:" + filepath.Join(dir, "x.sock"),
		"remote:tcp:" + dir, "fdb:" + dir, "fdb:", "memory:"} {
		require.NotEqual(t, one, storeKey(name), name)
	}
	require.Equal(t, storeKey("fdb:"+filepath.Join(dir, "c")), storeKey("fdb:"+dir+"/./c"))
	require.Empty(t, storeKey("memory:"))
	require.Empty(t, storeKey(""))
}

// TestHeadsThatEndedAreFoundNoMore has one head take its endpoint away, and one be killed: the
// kernel ends its lock.
func TestHeadsThatEndedAreFoundNoMore(t *testing.T) {
	t.Parallel()
	name := "remote:tcp:" + t.Name()
	leave := func(age time.Duration) func() error {
		remove, err := leaveHere(&headHere{endpoint: endpoint{Cluster: "main",
			URL: "http://127.0.0.1:1/" + age.String()}, Started: time.Now().Add(-age)}, name)
		require.NoError(t, err)
		return remove
	}
	older, newer := leave(time.Hour), leave(0)
	found := headsOf(name+"?x=1", "main")
	require.Len(t, found, 2)
	require.Equal(t, "http://127.0.0.1:1/0s", found[0].URL)
	require.Empty(t, headsOf(name, "other"))
	require.Empty(t, headsOf(name+"0", "main"))
	require.NoError(t, newer())
	found = headsOf(name, "main")
	require.Len(t, found, 1)
	require.Equal(t, "http://127.0.0.1:1/1h0m0s", found[0].URL)
	require.NoError(t, older())
	_, err := (&app{store: name, cluster: "main"}).findHead(true)
	require.ErrorContains(t, err, "--url")

	at := endpoint{URL: "http://127.0.0.1:1", Cluster: "main"}
	killed := leaveKilled(t, &headHere{endpoint: at, Stores: []string{name}})
	require.Empty(t, headsOf(name, "main"))
	remove := leave(0)
	require.NoFileExists(t, killed, "the next head removes it")
	require.NoError(t, remove())
}

// TestHeadsOnOtherMachinesHideNone has many heads on other machines that share the user's directory: those that
// were killed long ago go with the next head.
func TestHeadsOnOtherMachinesHideNone(t *testing.T) {
	t.Parallel()
	name := "remote:tcp:" + t.Name()
	var old, young []string
	at := endpoint{URL: "http://127.0.0.1:1", Cluster: "main"}
	for i := range 300 {
		h := &headHere{endpoint: at, Stores: []string{name}, Host: fmt.Sprintf("machine-%d", i)}
		if i%2 == 0 {
			h.Started = time.Now().Add(-2 * foreignAge)
			old = append(old, leaveForeign(t, h))
		} else {
			h.Started = time.Now().Add(-foreignAge / 2)
			young = append(young, leaveForeign(t, h))
		}
	}
	remove, err := leaveHere(&headHere{endpoint: at, Started: time.Now()}, name)
	require.NoError(t, err)
	require.Len(t, headsOf(name, "main"), 1)
	require.NoFileExists(t, old[0])
	require.FileExists(t, young[0])
	require.NoError(t, remove())
}

// leaveForeign leaves the endpoint of a head on another machine, which the test removes. Its name is the first.
func leaveForeign(t *testing.T, h *headHere) (path string) {
	dir, err := headsPath()
	require.NoError(t, err)
	content, err := json.Marshal(h)
	require.NoError(t, err)
	f, err := os.CreateTemp(dir, "head-!*.json")
	require.NoError(t, err)
	_, err = f.Write(content)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	return f.Name()
}

// TestAHeadIsThatOfItsDirectory has a head's store be named from the directory that it runs in:
// the same name in another directory is another store.
func TestAHeadIsThatOfItsDirectory(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	remove, err := leaveHere(&headHere{endpoint: endpoint{URL: "http://127.0.0.1:1", Cluster: "main"}},
		"embedded:./"+t.Name(), "fdb:./"+t.Name(), "memory:", "")
	require.NoError(t, err)
	found := headsOf("embedded:"+filepath.Join(here, t.Name()), "main")
	require.Len(t, found, 1)
	require.Equal(t, found, headsOf("fdb:"+filepath.Join(here, t.Name()), "main"))
	for i, kind := range []string{"directory:", "fdb:"} {
		require.Equal(t, kind+filepath.Join(here, t.Name()), found[0].Stores[i])
	}
	require.Len(t, found[0].Stores, 2)
	require.NoError(t, remove())
}

// leaveKilled leaves the endpoint of a head of this machine that holds no lock.
func leaveKilled(t *testing.T, h *headHere) string {
	dir, err := headsPath()
	require.NoError(t, err)
	h.Host, err = os.Hostname()
	require.NoError(t, err)
	content, err := json.Marshal(h)
	require.NoError(t, err)
	path := filepath.Join(dir, "head-killed.json")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// TestAProcessOfAnotherClusterIsNoHead: a directory says of its process which cluster that serves.
func TestAProcessOfAnotherClusterIsNoHead(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	startDev(t, "--store", s.store, "--cluster", "one")
	require.False(t, takesPeers(t, s.store, "--cluster", "one"))
	for _, args := range [][]string{{"peers"}, {"batch", "submit", "--function", "f", "a"}} {
		_, errOut := s.run(exitUsage, "", append(args, "--cluster", "two")...)
		require.Contains(t, errOut, "cluster two")
		require.Contains(t, errOut, "--url")
	}
	dir, _ := embeddedDir(s.store)
	e, err := readEndpoint(dir)
	require.NoError(t, err)
	e.Cluster = "" // as earlier versions write it
	require.NoError(t, e.write(dir))
	_, err = (&app{store: s.store, cluster: "two"}).findHead(false)
	require.NoError(t, err)
}
