package fdbmodel

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxModule is the largest WASM module, in bytes.
const MaxModule = 64 << 20

// cidPrefix says what follows in a content id: CID version 1, raw bytes, and 32
// bytes of sha2-256. Libraries for content ids link every known hash function,
// which programs that use this package don't need.
const cidPrefix = "\x01\x55\x12\x20"

// ModuleCID returns the content id of a module: CID version 1, raw, sha2-256,
// in base32.
func ModuleCID(module []byte) (string, error) {
	return cidOf(sha256.Sum256(module)), nil
}

func cidOf(sum [sha256.Size]byte) string {
	id := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(append([]byte(cidPrefix), sum[:]...))
	return "b" + strings.ToLower(id)
}

// PutModule stores a module under its content id, and makes alias, unless
// empty, stand for it from then on. Futures that were submitted with the alias
// earlier keep the module that they were submitted with. A module that is being
// removed stays. It returns ErrTooLarge and ErrBadName. An unknown commit is retried
// and harmless.
func (c *Cluster) PutModule(ctx context.Context, module []byte, alias string) (layout.Module, error) {
	if len(module) == 0 || len(module) > MaxModule {
		return layout.Module{}, fmt.Errorf("%w: module of %d bytes: use 1 to %d", ErrTooLarge, len(module), MaxModule)
	}
	if alias != "" {
		if err := layout.CheckAlias(alias); err != nil {
			return layout.Module{}, err
		}
	}
	id, err := ModuleCID(module)
	if err != nil {
		return layout.Module{}, err
	}
	info := layout.Module{CID: id, Size: int64(len(module)), StoredAt: layout.Millis(c.clock.Now())}
	for removed := true; removed; {
		if err := c.putPieces(ctx, module, func(i int) []byte { return c.keys.CodeBody(id, i) }); err != nil {
			return info, err
		}
		if removed, err = c.putInfo(ctx, info, alias); err != nil {
			return info, err
		}
	}
	if alias != "" {
		info.Aliases = []string{alias}
	}
	return info, nil
}

// putInfo writes what makes the pieces of a module a stored one. It reports whether
// RemoveModule has removed pieces meanwhile. They are removed all at once and are
// written in order, so if the first and the last are there, all of them are.
func (c *Cluster) putInfo(ctx context.Context, info layout.Module, alias string) (removed bool, err error) {
	id, value := info.CID, layout.Encode(&info)
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-code"}, func(tx kv.Attempt) error {
		first, last := tx.Get(c.keys.CodeBody(id, 0)), tx.Get(c.keys.CodeBody(id, layout.Pieces(info.Size)-1))
		for _, piece := range []kv.Pending[[]byte]{first, last} {
			found, err := piece.Wait(ctx)
			if err != nil {
				return err
			}
			if removed = found == nil; removed {
				return nil
			}
		}
		// The late twin of an attempt can't undo what follows its retry.
		tx.AddReadConflictKey(c.keys.CodeInfo(id))
		tx.Set(c.keys.CodeInfo(id), value)
		if alias == "" {
			return nil
		}
		named := layout.Encode(&layout.AliasRecord{CID: id, At: info.StoredAt})
		tx.AddReadConflictKey(c.keys.Alias(alias))
		tx.Set(c.keys.Alias(alias), named)
		return nil
	})
	return removed, err
}

// GetModule returns a module's bytes, checked against its content id. It
// returns ErrNotFound, and ErrBadRecord if the bytes do not match the content
// id.
func (c *Cluster) GetModule(ctx context.Context, id string) ([]byte, error) {
	info, err := c.moduleInfo(ctx, id)
	if err != nil {
		return nil, err
	}
	module, err := c.readPieces(ctx, info.Size, func(i int) []byte { return c.keys.CodeBody(id, i) })
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", id, err)
	}
	if found, err := ModuleCID(module); err != nil || found != id {
		return nil, fmt.Errorf("module %s: %w: its bytes have the id %s", id, layout.ErrBadRecord, found)
	}
	return module, nil
}

// ModuleReader reads a module part by part. One goroutine uses it.
type ModuleReader struct {
	cluster *Cluster
	id      string
	size    int64
}

// OpenModule returns a reader of a module. What it reads is not checked against the
// content id. It returns ErrNotFound.
func (c *Cluster) OpenModule(ctx context.Context, id string) (*ModuleReader, error) {
	info, err := c.moduleInfo(ctx, id)
	return &ModuleReader{c, id, info.Size}, err
}

// Size is how many bytes the module has.
func (r *ModuleReader) Size() int64 { return r.size }

// Unit is what reads begin and end at multiples of, but for the end of the module.
func (r *ModuleReader) Unit() int64 { return layout.ChunkSize }

// ReadAt fills p with what begins at offset. It returns ErrNotFound if the module was
// removed. It may be called again.
func (r *ModuleReader) ReadAt(ctx context.Context, p []byte, offset int64) error {
	end := offset + int64(len(p))
	if offset < 0 || end > r.size || offset%r.Unit() != 0 || end%r.Unit() != 0 && end != r.size {
		return fmt.Errorf("%d bytes at %d of a module of %d bytes: not multiples of %d", len(p), offset, r.size, r.Unit())
	}
	err := r.cluster.fillPieces(ctx, p, layout.Pieces(r.size), int(offset/layout.ChunkSize),
		func(i int) []byte { return r.cluster.keys.CodeBody(r.id, i) })
	if err != nil {
		err = fmt.Errorf("module %s: %w", r.id, err)
	}
	return err
}

func (c *Cluster) moduleInfo(ctx context.Context, id string) (layout.Module, error) {
	info := layout.Module{CID: id}
	err := c.View(ctx, func(tx kv.Attempt) error {
		key := c.keys.CodeInfo(id)
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			return fmt.Errorf("module %s: %w", id, ErrNotFound)
		}
		return layout.Decode(key, value, &info)
	})
	if err == nil && (info.Size < 1 || info.Size > MaxModule) {
		err = fmt.Errorf("module %s: %w: %d bytes", id, layout.ErrBadRecord, info.Size)
	}
	return info, err
}

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

// ResolveFilter is ResolveFunction for a name that futures are selected by, which may
// also be that of futures that were put.
func (c *Cluster) ResolveFilter(ctx context.Context, function string) (string, error) {
	if function == layout.FunctionPut {
		return function, nil
	}
	return c.ResolveFunction(ctx, function)
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
		asked, info := tx.Snapshot().Get(c.keys.Alias(name)), tx.Snapshot().Get(c.keys.CodeInfo(name))
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

// Modules returns all stored modules with their aliases, sorted by content id. A
// module whose record can't be read has the size 0, and an alias whose record
// can't is left out: the audit names both.
func (c *Cluster) Modules(ctx context.Context) ([]layout.Module, error) {
	aliases := map[string][]string{}
	aliasPrefix := c.keys.Global(layout.SubAliases)
	err := c.EachKey(ctx, kv.Prefix(aliasPrefix), func(item kv.KeyValue) error {
		var record layout.AliasRecord
		rest := tuple.NewReader(item.Key[len(aliasPrefix):])
		name := rest.Text()
		if layout.Decode(item.Key, item.Value, &record) == nil && rest.Err() == nil {
			aliases[record.CID] = append(aliases[record.CID], name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var modules []layout.Module
	prefix := c.keys.Global(layout.SubCode)
	r := kv.Prefix(prefix)
	for {
		var page kv.Page
		err := c.View(ctx, func(tx kv.Attempt) error {
			var err error
			page, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
			return err
		})
		if err != nil || len(page.Items) == 0 {
			return modules, err
		}
		rest := tuple.NewReader(page.Items[0].Key[len(prefix):])
		id := rest.Text()
		if rest.Err() != nil {
			r.Begin = kv.After(page.Items[0].Key)
			continue
		}
		r.Begin = kv.AfterPrefix(c.keys.CodeOf(id))
		info, err := c.moduleInfo(ctx, id)
		switch {
		case errors.Is(err, ErrNotFound): // it is still being written
			continue
		case errors.Is(err, layout.ErrBadRecord), errors.Is(err, layout.ErrNewerRecord):
			info = layout.Module{CID: id}
		case err != nil:
			return nil, err
		}
		info.Aliases = aliases[id]
		sort.Strings(info.Aliases)
		modules = append(modules, info)
	}
}

// EachKey calls fn for each key of a range, read in pages at different versions.
func (c *Cluster) EachKey(ctx context.Context, r kv.Range, fn func(kv.KeyValue) error) error {
	const page = 500
	for {
		var items kv.Page
		err := c.View(ctx, func(tx kv.Attempt) error {
			var err error
			items, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: page}).Wait(ctx)
			return err
		})
		if err != nil {
			return err
		}
		for _, item := range items.Items {
			if err := fn(item); err != nil {
				return err
			}
		}
		if !items.More {
			return nil
		}
		r.Begin = kv.After(items.Items[len(items.Items)-1].Key)
	}
}
