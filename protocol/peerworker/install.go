package peerworker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/source"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/protocol"
)

// Bounds of installations.
const (
	maxInstalling = 2  // at a time
	maxInstalls   = 16 // that wait
	maxFunctions  = 10_000
)

// installedFunctions are the functions that heads of b7s have installed.
type installedFunctions struct {
	worker  *Worker
	client  *source.Client
	turns   chan struct{}
	mu      sync.Mutex
	waiting int
	known   map[string]installedFunction
}

// installedAs names a function that a head has installed: the ids are the heads' own, and
// most of them prove nothing of the code.
func installedAs(head, id string) string {
	sum := sha256.Sum256([]byte(head))
	return hex.EncodeToString(sum[:8]) + "-" + id
}

// installedFunction is what the store remembers of one.
type installedFunction struct {
	Manifest string   `json:"manifest,omitempty"`
	Methods  []string `json:"methods"`
}

func newInstalled(w *Worker) *installedFunctions {
	return &installedFunctions{
		worker: w, client: source.NewClient(source.Options{Private: w.options.PrivateSources}),
		turns: make(chan struct{}, maxInstalling), known: map[string]installedFunction{},
	}
}

func functionKeys() []byte {
	return tuple.AppendString(tuple.AppendString(nil, recordSpace), "functions")
}

// recall reads what the store remembers.
func (f *installedFunctions) recall(ctx context.Context) error {
	prefix := functionKeys()
	return f.worker.node.cluster.EachKey(ctx, kv.Prefix(prefix), func(found kv.KeyValue) error {
		key := tuple.NewReader(found.Key[len(prefix):])
		id := key.Text()
		var function installedFunction
		if err := json.Unmarshal(found.Value, &function); err != nil || key.Done() != nil {
			f.worker.log.Error("an installed function can't be read; install it again", "function", id)
			return nil
		}
		f.known[id] = function
		return nil
	})
}

// runs reports whether a head may order a function.
func (f *installedFunctions) runs(head, id string) bool {
	if strings.HasPrefix(id, goPrefix) {
		return f.worker.runsHere(id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.known[installedAs(head, id)]
	return known && f.worker.options.Modules != nil
}

// installLater installs a function and answers the head, unless too many wait. As with
// b7s a failed installation has no answer.
func (w *Worker) installLater(head string, m *protocol.InstallFunction) {
	f := w.functionsOfB7S
	f.mu.Lock()
	busy := f.waiting >= maxInstalls || w.options.Modules == nil || w.stopping.Load()
	if !busy {
		f.waiting++
	}
	f.mu.Unlock()
	if busy {
		w.rare.Warn("a function is not installed: too many are, or this worker runs no modules", "function", m.CID)
		return
	}
	w.spawn(func() {
		defer func() {
			f.mu.Lock()
			f.waiting--
			f.mu.Unlock()
		}()
		select {
		case f.turns <- struct{}{}:
		case <-w.ctx.Done():
			return
		}
		defer func() { <-f.turns }()
		if err := f.install(w.ctx, head, m); err != nil {
			if w.ctx.Err() == nil {
				w.rare.Warn("a function can't be installed", "head", head, "function", m.CID, "error", err)
			}
			return
		}
		_ = w.sendB7S(w.ctx, head, &protocol.InstallFunctionResponse{
			Envelope: m.Envelope, Code: protocol.CodeAccepted, Message: "installed", CID: m.CID,
		}, protocol.DialectChunk) // that it was not sent is in the log
	})
}

// install fetches a function, and stores its modules under the names of its methods.
func (f *installedFunctions) install(ctx context.Context, head string, m *protocol.InstallFunction) error {
	archive, err := f.client.Archive(ctx, m.ManifestURL, m.CID)
	if err != nil {
		return err
	}
	function, name := installedFunction{Manifest: m.ManifestURL}, installedAs(head, m.CID)
	if f.isFull(name) {
		return errFull
	}
	// All of it is checked before any counts.
	sizes := map[string]int64{}
	err = source.Unpack(ctx, nil, archive, func(module source.Module) error { return f.check(ctx, &module, sizes) })
	if err != nil {
		return err
	}
	err = source.Unpack(ctx, nil, archive, func(module source.Module) error {
		function.Methods = append(function.Methods, module.Method)
		return f.worker.modules.store(ctx, head, module.Code, batch.FunctionAlias(name, module.Method))
	})
	if err != nil {
		return err
	}
	return f.remember(ctx, name, function)
}

// errFull is returned for a function that there is no room for.
var errFull = fmt.Errorf("%d functions are installed, which is the most", maxFunctions)

// isFull reports whether a function is one too many.
func (f *installedFunctions) isFull(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.known[id]
	return !known && len(f.known) >= maxFunctions
}

// check refuses modules that can't run, or that there is no room for, and adds their sizes to those of the others
// of their archive, by content.
func (f *installedFunctions) check(ctx context.Context, m *source.Module, sizes map[string]int64) error {
	cid, err := modules.CID(m.Code)
	if err != nil {
		return err
	}
	stored, err := modules.Of(f.worker.node.cluster).List(ctx)
	if err != nil {
		return err
	}
	sizes[cid] = int64(len(m.Code))
	total := int64(0)
	for _, size := range sizes {
		total += size
	}
	for _, s := range stored {
		if _, own := sizes[s.CID]; !own && len(s.Aliases) > 0 {
			total += s.Size // it stays
		}
	}
	if total > f.worker.options.ModuleCache {
		return fmt.Errorf("%d bytes of installed modules: at most %d", total, f.worker.options.ModuleCache)
	}
	if f.worker.options.CheckModule == nil {
		return nil
	}
	return f.worker.options.CheckModule(ctx, cid, m.Code)
}

func (f *installedFunctions) remember(ctx context.Context, id string, function installedFunction) error {
	if f.isFull(id) { // another one was installed meanwhile
		return errFull
	}
	slices.Sort(function.Methods)
	value, err := json.Marshal(&function)
	if err != nil {
		return err
	}
	err = f.worker.node.transact(ctx, func(tx kv.Attempt) error {
		tx.Set(tuple.AppendString(functionKeys(), id), value)
		return nil
	})
	if err == nil {
		f.mu.Lock()
		f.known[id] = function
		f.mu.Unlock()
		f.worker.log.Info("installed a function", "function", id, "methods", function.Methods)
	}
	return err
}
