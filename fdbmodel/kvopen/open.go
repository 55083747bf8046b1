package kvopen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/embedded"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// ErrBadName is returned when a text does not name a store.
var ErrBadName = errors.New("kvopen: not the name of a store")

const usage = "use memory:, embedded:DIR, embedded:DIR?sync=off or fdb:CLUSTERFILE"

// Options of Open. The zero value is ready to use.
type Options struct {
	// Logger is told of repairs, checkpoints and failures of an embedded store.
	// Defaults to none.
	Logger *slog.Logger
	// ConnectTimeout is how long to wait for the first answer of a FoundationDB
	// cluster. Defaults to 5 s.
	ConnectTimeout time.Duration
}

// Open opens the store that name names. It returns ErrBadName if name is none,
// kv.ErrNotBuilt if this binary has no driver for it, and otherwise the errors
// of the store: kv.ErrStoreInUse and kv.ErrCorrupt of an embedded one,
// kv.ErrUnavailable of a cluster that does not answer.
func Open(ctx context.Context, name string, o Options) (kv.Database, error) {
	parsed, err := parse(name)
	if err != nil {
		return nil, err
	}
	switch parsed.scheme {
	case schemeMemory:
		return embedded.OpenMemory(embedded.Options{Logger: o.Logger}), nil
	case schemeEmbedded:
		store, err := embedded.Open(ctx, parsed.path, embedded.Options{SyncOff: parsed.syncOff, Logger: o.Logger})
		if err != nil {
			return nil, fmt.Errorf("kvopen: %s: %w", name, err)
		}
		return store, nil
	default:
		return openFDB(ctx, parsed.path, o)
	}
}

const (
	schemeMemory   = "memory"
	schemeEmbedded = "embedded"
	schemeFDB      = "fdb"
)

// storeName is a store's name taken apart.
type storeName struct {
	scheme  string
	path    string
	syncOff bool
}

func parse(name string) (storeName, error) {
	bad := func(reason string) (storeName, error) {
		return storeName{}, fmt.Errorf("%w: %q: %s; %s", ErrBadName, name, reason, usage)
	}
	scheme, rest, found := strings.Cut(name, ":")
	switch scheme {
	case schemeMemory, schemeEmbedded, schemeFDB:
		if !found {
			return bad("a colon is missing behind " + scheme)
		}
	default:
		if name == "" {
			return bad("it is empty")
		}
		return bad("unknown kind of store")
	}
	path, query, _ := strings.Cut(rest, "?")
	parsed := storeName{scheme: scheme, path: path}
	switch {
	case scheme == schemeMemory && path != "":
		return bad("memory: takes nothing behind it")
	case scheme == schemeEmbedded && path == "":
		return bad("a directory is missing")
	case scheme == schemeFDB && strings.HasPrefix(path, "//"):
		return bad("fdb: takes the path of a cluster file, not a URL")
	}
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return bad(err.Error())
	}
	for parameter, values := range parameters {
		if scheme != schemeEmbedded || parameter != "sync" {
			return bad(fmt.Sprintf("%s: has no parameter %q", scheme, parameter))
		}
		if len(values) != 1 || values[0] != "on" && values[0] != "off" {
			return bad("sync is on or off")
		}
		parsed.syncOff = values[0] == "off"
	}
	return parsed, nil
}
