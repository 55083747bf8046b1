package kvopen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/internal/clock"
)

// ErrBadName is returned when a text does not name a store.
var ErrBadName = errors.New("kvopen: not the name of a store")

const usage = "use memory:, embedded:DIR, embedded:DIR?sync=off, remote:unix:PATH, remote:tcp:HOST:PORT " +
	"or fdb:CLUSTERFILE"

// Options of Open. The zero value is ready to use.
type Options struct {
	// Logger receives the checkpoints of an embedded store, and what it found and
	// passed over at its opening; and when a serving process is away, and back. Defaults
	// to none.
	Logger *slog.Logger
	// ConnectTimeout is how long to wait for the first answer of a FoundationDB
	// cluster or of a serving process. Defaults to 5 s.
	ConnectTimeout time.Duration
	// Exclusive makes Open return kv.ErrStoreInUse for an embedded store that
	// another process has open. Defaults to false: Open reaches it through that
	// process, if it shares it. A name with ?share=off is exclusive.
	Exclusive bool
	// Share has this process share an embedded store with the others of its user, as package
	// sharing says: it serves the store while it has it open, and takes it over when the process
	// that has it open ends. Exclusive turns it off. Defaults to false.
	Share bool
	// TakeOver has this process take an embedded store over that it reaches through another process, when that ends.
	// A store that nobody has open is its own, as without TakeOver. Defaults to false.
	TakeOver bool
	// InUseWait is how long Open waits for an embedded store that another process
	// has open and does not serve: commands that run at once take turns. Defaults
	// to 0, not at all, and to 10 s with Share.
	InUseWait time.Duration
	// GiveUpAfter is how long a serving process may be away before everything
	// fails with remote.ErrGone. Defaults to no limit.
	GiveUpAfter time.Duration
}

// Open opens the store that name names. It returns ErrBadName for an invalid name,
// kv.ErrNotBuilt if this binary has no driver for it, and otherwise the errors
// of the store: kv.ErrStoreInUse, kv.ErrExposed and kv.ErrCorrupt of an embedded
// one, those of remote.Open, kv.ErrUnavailable of a cluster that does not answer.
func Open(ctx context.Context, name string, o Options) (kv.Database, error) {
	parsed, err := parse(name)
	if err != nil {
		return nil, err
	}
	switch parsed.scheme {
	case schemeMemory:
		return embedded.OpenMemory(embedded.Options{Logger: o.Logger}), nil
	case schemeEmbedded:
		return openEmbedded(ctx, name, parsed, o)
	case schemeRemote:
		return openRemote(ctx, parsed.remote, o)
	default:
		return openFDB(ctx, parsed.path, o)
	}
}

// connectTimeout is the usual ConnectTimeout, and connectMin the shortest of a process that may have to give up.
const (
	connectTimeout = 5 * time.Second
	connectMin     = 500 * time.Millisecond
)

// Waits between two tries to open a store that is in use.
const (
	inUseWaitMin = 5 * time.Millisecond
	inUseWaitMax = 100 * time.Millisecond
)

// openEmbedded opens an embedded store, or the process that serves it.
func openEmbedded(ctx context.Context, name string, parsed storeName, o Options) (kv.Database, error) {
	options := embedded.Options{SyncOff: parsed.syncOff, Exposed: parsed.exposed, AcceptLoss: parsed.acceptLoss,
		Memory: parsed.memory, Logger: o.Logger}
	o.Exclusive = o.Exclusive || parsed.shareOff
	if o.Share && !o.Exclusive {
		store, err := sharing.Open(ctx, parsed.path, sharing.Options{Embedded: options, Wait: o.InUseWait,
			GiveUpAfter: o.GiveUpAfter, ConnectTimeout: o.ConnectTimeout, Logger: o.Logger})
		if err != nil {
			return nil, fmt.Errorf("kvopen: %s: %w", name, err)
		}
		return store, nil
	}
	began := time.Now()
	deadline := began.Add(o.InUseWait)
	for wait := inUseWaitMin; ; wait = min(2*wait, inUseWaitMax) {
		store, err := openAlone(ctx, parsed.path, options)
		if err == nil {
			return store, nil
		}
		err = fmt.Errorf("kvopen: %s: %w", name, err)
		if !errors.Is(err, kv.ErrStoreInUse) {
			return nil, err
		}
		db, served, err := openHeld(ctx, parsed.path, err, options, o.untilGivenUp(began))
		late := !time.Now().Before(deadline)
		if errors.Is(err, remote.ErrSilent) {
			late = late || o.GiveUpAfter > 0 && time.Since(began) >= o.GiveUpAfter
			owner, _ := sharing.ReadRecord(parsed.path)
			err = fmt.Errorf("kvopen: %s: %w", name, sharing.Silent(owner, time.Since(began)))
		}
		if err == nil || served || late {
			return db, err
		}
		if ended := clock.Sleep(ctx, clock.Real{}, wait/2+rand.N(wait)); ended != nil {
			return nil, errors.Join(ended, err)
		}
	}
}

// untilGivenUp are the options with a ConnectTimeout that ends with GiveUpAfter, which began then. A process that is
// merely busy has a moment all the same.
func (o Options) untilGivenUp(began time.Time) Options {
	if o.GiveUpAfter > 0 {
		left := max(o.GiveUpAfter-time.Since(began), connectMin)
		o.ConnectTimeout = min(cmp.Or(o.ConnectTimeout, connectTimeout), left)
	}
	return o
}

// openAlone opens a store for this process alone.
func openAlone(ctx context.Context, dir string, o embedded.Options) (*embedded.Store, error) {
	if err := sharing.InUse(dir, o.Exposed); err != nil {
		return nil, err
	}
	return embedded.Open(ctx, dir, o)
}

const (
	schemeMemory   = "memory"
	schemeEmbedded = "embedded"
	schemeFDB      = "fdb"
	schemeRemote   = "remote"
)

// storeName is a store's name taken apart.
type storeName struct {
	scheme     string
	path       string
	syncOff    bool
	exposed    bool
	shareOff   bool
	acceptLoss uint64
	// memory is zero where the name does not say.
	memory int64
	remote remoteName
}

func parse(name string) (storeName, error) {
	bad := func(reason string) (storeName, error) {
		return storeName{}, fmt.Errorf("%w: %q: %s; %s", ErrBadName, name, reason, usage)
	}
	scheme, rest, found := strings.Cut(name, ":")
	switch scheme {
	case schemeMemory, schemeEmbedded, schemeFDB, schemeRemote:
		if !found {
			return bad("a colon is missing after " + scheme)
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
		return bad("memory: takes nothing after it")
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
		if !slices.Contains(parametersOf(scheme), parameter) {
			return bad(fmt.Sprintf("%s: has no parameter %q", scheme, parameter))
		}
		if len(values) != 1 {
			return bad(parameter + " is given more than once")
		}
	}
	switch scheme {
	case schemeEmbedded:
		for _, parameter := range []string{parameterSync, parameterShare, parameterExposed} {
			value := parameters.Get(parameter)
			if parameters.Has(parameter) && value != "on" && value != "off" {
				return bad(parameter + " must be on or off")
			}
		}
		parsed.syncOff = parameters.Get(parameterSync) == "off"
		parsed.shareOff = parameters.Get(parameterShare) == "off"
		parsed.exposed = parameters.Get(parameterExposed) == "on"
		if record := parameters.Get(parameterAcceptLoss); parameters.Has(parameterAcceptLoss) {
			if parsed.acceptLoss, err = strconv.ParseUint(record, 10, 64); err != nil || parsed.acceptLoss == 0 {
				return bad(parameterAcceptLoss + " must be the number of a record, as the error that reports the loss names it")
			}
		}
		if text := parameters.Get(parameterMemory); parameters.Has(parameterMemory) {
			if parsed.memory, err = parseMemory(text); err != nil {
				return bad(err.Error())
			}
		}
	case schemeRemote:
		if parsed.remote, err = parseRemote(path, parameters); err != nil {
			return bad(err.Error())
		}
	}
	return parsed, nil
}

// Parameters of an embedded store.
const (
	parameterSync       = "sync"
	parameterShare      = "share"
	parameterExposed    = "exposed"
	parameterAcceptLoss = "accept-loss"
	parameterMemory     = "memory"
)

// memoryMin and memoryMax bound the memory that a name may give a store.
const (
	memoryMin = 16 << 20
	memoryMax = 1 << 50
)

// parseMemory reads a number of bytes with a unit: 512MiB, 2GiB.
func parseMemory(text string) (int64, error) {
	for unit, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		number, found := strings.CutSuffix(text, unit)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err == nil && n > 0 && n <= memoryMax/size && n*size >= memoryMin {
			return n * size, nil
		}
	}
	return 0, fmt.Errorf("%s must be 16MiB to 1024TiB, such as 512MiB or 2GiB", parameterMemory)
}

// parametersOf returns the parameters that a kind of store has.
func parametersOf(scheme string) []string {
	switch scheme {
	case schemeEmbedded:
		return []string{parameterSync, parameterShare, parameterExposed, parameterAcceptLoss, parameterMemory}
	case schemeRemote:
		return []string{parameterTokenFile, parameterCA, parameterTLS}
	}
	return nil
}
