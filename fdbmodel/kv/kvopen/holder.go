package kvopen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/trust"
)

// endpointFile lies in the directory of a store that a process serves, such as
// futura dev.
const endpointFile = "endpoint.json"

// maxEndpoint bounds what is read of it, in bytes.
const maxEndpoint = 64 << 10

// holder is the process that has a store open, as its endpoint says.
type holder struct {
	URL   string `json:"url"`
	PID   int    `json:"pid"`
	Store string `json:"store"`
}

// openHeld opens a store that another process has open through that one, if it
// serves it. Else the error says what can be done, and served whether that process
// serves the store and so has it open until it is stopped.
func openHeld(ctx context.Context, dir string, inUse error, o Options) (db kv.Database, served bool, err error) {
	h, err := readHolder(dir)
	served = err == nil && h.answers()
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("%w: another process has it open and does not serve it: stop that process, or run "+
			"futura dev --store embedded:%s instead, which serves it to programs that use this name", inUse, dir)
	case o.Exclusive || h.Store == "":
		return nil, served, fmt.Errorf("%w: process %d has it open and serves %s: stop that process, or name another store",
			inUse, h.PID, h.URL)
	}
	name, err := parse(h.Store)
	if err != nil || name.scheme != schemeRemote || !strings.HasPrefix(h.Store, "remote:unix:") {
		return nil, served, fmt.Errorf("%w: %s names %.200q, which is not a Unix socket", inUse,
			filepath.Join(dir, endpointFile), h.Store)
	}
	if !served && o.InUseWait > 0 {
		err = errNoAnswer
	} else {
		db, err = openRemote(ctx, name.remote, o)
	}
	if err != nil {
		return nil, served, fmt.Errorf("%w: process %d should serve it: %w: if that process is gone, stop the program "+
			"that has it open instead", inUse, h.PID, err)
	}
	return db, true, nil
}

var errNoAnswer = errors.New("it does not answer")

// answers reports whether the process accepts connections.
func (h *holder) answers() bool {
	path, unix := strings.CutPrefix(h.Store, "remote:unix:")
	if !unix {
		return false
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// readHolder reads the endpoint of a directory. One that other users may read or
// write is refused: it could lead anywhere.
func readHolder(dir string) (h holder, err error) {
	content, err := trust.ReadSecret(filepath.Join(dir, endpointFile), maxEndpoint)
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(content, &h)
}
