// Package module finds out which module a function's name means, and whether it is stored.
package module

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// moduleFile is the suffix of a module's file name. As a method such a name
// means the module's start: no export has such a name.
const moduleFile = ".wasm"

// Known resolves the names of functions of modules, and remembers some that are known to be stored. Its methods
// are safe for concurrent use.
type Known struct {
	Keys layout.Keyspace
	View func(context.Context, func(kv.Attempt) error) error

	names names
}

// Resolve returns a function's name with its alias, if it is one,
// replaced by the content id of the module that it presently stands for.
// NAME/METHOD is the module with that alias, or else the export METHOD of the
// module NAME, or its start if METHOD is FILE.wasm. It returns
// layout.ErrBadName, and layout.ErrNotFound for a module or alias that is not stored.
func (k *Known) Resolve(ctx context.Context, function string) (string, error) {
	if err := layout.CheckFunctionName(function); err != nil {
		return "", err
	}
	module, method, ok := layout.SplitWasm(function)
	if !ok || k.names.has(function) {
		return function, nil
	}
	id, err := "", layout.ErrNotFound
	export := method
	if method != "" {
		export = ""
		id, err = k.module(ctx, module+"/"+method)
	}
	if errors.Is(err, layout.ErrNotFound) {
		id, err = k.module(ctx, module)
		if !strings.HasSuffix(method, moduleFile) {
			export = method
		}
	}
	if err != nil {
		return "", fmt.Errorf("function %s: %w", function, err)
	}
	if export != "" {
		export = "/" + export
	}
	name := "wasm:" + id + export
	k.names.add(name)
	return name, nil
}

// names are functions by content id that are known to be stored. All are forgotten once there are maxNames.
type names struct {
	mu    sync.Mutex
	names map[string]struct{}
}

const maxNames = 4096

func (r *names) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.names[name]
	return ok
}

func (r *names) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil || len(r.names) >= maxNames {
		r.names = map[string]struct{}{}
	}
	r.names[name] = struct{}{}
}

func (r *names) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

func (k *Known) module(ctx context.Context, name string) (string, error) {
	var id string
	err := k.View(ctx, func(tx kv.Attempt) error {
		asked, info := tx.Snapshot().Get(k.Keys.Alias(name)), tx.Snapshot().Get(k.Keys.ModuleInfo(name))
		value, err := asked.Wait(ctx)
		if err != nil {
			return err
		}
		if value != nil {
			var record layout.AliasRecord
			err := layout.Decode(k.Keys.Alias(name), value, &record)
			id = record.CID
			return err
		}
		stored, err := info.Wait(ctx)
		if err == nil && stored == nil {
			err = fmt.Errorf("%w: no module and no alias has this name; store one first", layout.ErrNotFound)
		}
		id = name
		return err
	})
	return id, err
}

// Require returns layout.ErrNotFound unless a module is stored, and is not being removed. The
// transaction conflicts with its removal.
func Require(ctx context.Context, tx kv.Reader, keys layout.Keyspace, id string) error {
	return require(ctx, keys, id, tx.Get(keys.ModuleInfo(id)))
}

// require is Require for the info of a module that was asked for.
func require(ctx context.Context, keys layout.Keyspace, id string, info kv.Pending[[]byte]) error {
	value, err := info.Wait(ctx)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("%w: module %s; store it first", layout.ErrNotFound, id)
	}
	var found layout.Module
	if err := layout.Decode(keys.ModuleInfo(id), value, &found); err != nil {
		return err
	}
	if found.Retired != 0 {
		return fmt.Errorf("%w: module %s is being removed; store it again to keep it", layout.ErrNotFound, id)
	}
	return nil
}

// Needed are the modules that new futures of one transaction need.
type Needed struct {
	Known *Known

	asked  map[string]kv.Pending[[]byte]
	stored map[string]bool
}

// Ask requests the module of a function, if it is one of a module.
func (n *Needed) Ask(tx kv.Reader, function string) {
	id, _, ok := layout.SplitWasm(function)
	if _, asked := n.asked[id]; !ok || asked {
		return
	}
	if n.asked == nil {
		n.asked, n.stored = map[string]kv.Pending[[]byte]{}, map[string]bool{}
	}
	n.asked[id] = tx.Get(n.Known.Keys.ModuleInfo(id))
}

// Check returns layout.ErrNotFound unless the module of a function that was asked for is stored.
func (n *Needed) Check(ctx context.Context, function string) error {
	id, _, ok := layout.SplitWasm(function)
	if !ok || n.stored[id] {
		return nil
	}
	if err := require(ctx, n.Known.Keys, id, n.asked[id]); err != nil {
		if errors.Is(err, layout.ErrNotFound) {
			n.Known.names.remove(function)
		}
		return fmt.Errorf("function %s: %w", function, err)
	}
	n.stored[id] = true
	return nil
}
