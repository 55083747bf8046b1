package fdbmodel

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

// ResolveFunction returns a function's name with its alias, if it is one,
// replaced by the content id of the module that it presently stands for.
// NAME/METHOD is the module with that alias, or else the export METHOD of the
// module NAME, or its start if METHOD is FILE.wasm. It returns ErrBadName, and
// ErrNotFound for a module or alias that is not stored.
func (c *Cluster) ResolveFunction(ctx context.Context, function string) (string, error) {
	if err := layout.CheckFunctionName(function); err != nil {
		return "", err
	}
	module, method, ok := layout.SplitWasm(function)
	if !ok || c.resolved.has(function) {
		return function, nil
	}
	id, err := "", ErrNotFound
	export := method
	if method != "" {
		export = ""
		id, err = c.resolveModule(ctx, module+"/"+method)
	}
	if errors.Is(err, ErrNotFound) {
		id, err = c.resolveModule(ctx, module)
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
	c.resolved.add(name)
	return name, nil
}

// resolvedNames remembers functions by content id that are known to be stored.
// It is emptied when full.
type resolvedNames struct {
	mu    sync.Mutex
	names map[string]struct{}
}

const maxResolvedNames = 4096

func (r *resolvedNames) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.names[name]
	return ok
}

func (r *resolvedNames) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil || len(r.names) >= maxResolvedNames {
		r.names = map[string]struct{}{}
	}
	r.names[name] = struct{}{}
}

func (r *resolvedNames) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

func (c *Cluster) resolveModule(ctx context.Context, name string) (string, error) {
	var id string
	err := c.View(ctx, func(tx kv.Attempt) error {
		asked, info := tx.Snapshot().Get(c.keys.Alias(name)), tx.Snapshot().Get(c.keys.ModuleInfo(name))
		value, err := asked.Wait(ctx)
		if err != nil {
			return err
		}
		if value != nil {
			var record layout.AliasRecord
			err := layout.Decode(c.keys.Alias(name), value, &record)
			id = record.CID
			return err
		}
		stored, err := info.Wait(ctx)
		if err == nil && stored == nil {
			err = fmt.Errorf("%w: no module and no alias has this name; store one first", ErrNotFound)
		}
		id = name
		return err
	})
	return id, err
}

// RequireModule returns ErrNotFound unless a module is stored, and is not being removed. The
// transaction conflicts with its removal.
func (c *Cluster) RequireModule(ctx context.Context, tx kv.Tx, id string) error {
	return c.requireModule(ctx, id, tx.Get(c.keys.ModuleInfo(id)))
}

// requireModule returns ErrNotFound unless the info of a module was found, of one
// that is not being removed.
func (c *Cluster) requireModule(ctx context.Context, id string, info kv.Pending[[]byte]) error {
	value, err := info.Wait(ctx)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("%w: module %s; store it first", ErrNotFound, id)
	}
	var found layout.Module
	if err := layout.Decode(c.keys.ModuleInfo(id), value, &found); err != nil {
		return err
	}
	if found.Retired != 0 {
		return fmt.Errorf("%w: module %s is being removed; store it again to keep it", ErrNotFound, id)
	}
	return nil
}

// neededModules are the modules that new futures of one transaction need.
type neededModules struct {
	cluster *Cluster
	asked   map[string]kv.Pending[[]byte]
	stored  map[string]bool
}

// prepare requests the module of a function that is one of a module.
func (n *neededModules) prepare(tx kv.Tx, _ int, s *Submission) {
	id, _, ok := layout.SplitWasm(s.Spec.Function)
	if _, asked := n.asked[id]; !ok || asked {
		return
	}
	if n.asked == nil {
		n.asked, n.stored = map[string]kv.Pending[[]byte]{}, map[string]bool{}
	}
	n.asked[id] = tx.Get(n.cluster.keys.ModuleInfo(id))
}

// check returns ErrNotFound unless the function's module is stored.
func (n *neededModules) check(ctx context.Context, _ int, s *Submission) error {
	function := s.Spec.Function
	id, _, ok := layout.SplitWasm(function)
	if !ok || n.stored[id] {
		return nil
	}
	if err := n.cluster.requireModule(ctx, id, n.asked[id]); err != nil {
		if errors.Is(err, ErrNotFound) {
			n.cluster.resolved.remove(function)
		}
		return fmt.Errorf("function %s: %w", function, err)
	}
	n.stored[id] = true
	return nil
}
