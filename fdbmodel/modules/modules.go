// Package modules stores WASM modules by their content ids, and the aliases that stand for
// them.
package modules

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pieces"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxSize is the largest WASM module, in bytes.
const MaxSize = 64 << 20

// cidPrefix says what follows in a content id: CID version 1, raw bytes, and 32
// bytes of sha2-256. Libraries for content ids link every known hash function,
// which programs that use this package don't need.
const cidPrefix = "\x01\x55\x12\x20"

// CID returns the content id of a module: CID version 1, raw, sha2-256,
// in base32.
func CID(module []byte) (string, error) {
	return cidOf(sha256.Sum256(module)), nil
}

func cidOf(sum [sha256.Size]byte) string {
	id := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(append([]byte(cidPrefix), sum[:]...))
	return "b" + strings.ToLower(id)
}

// Modules are the modules of one cluster. Its methods may be called from many goroutines.
type Modules struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
}

// Of returns the modules of a cluster.
func Of(c *fdbmodel.Cluster) *Modules { return &Modules{cluster: c, keys: c.Keys()} }

// Put stores a module under its content id, and makes alias, unless
// empty, stand for it from then on. Futures that were submitted with the alias
// earlier keep the module that they were submitted with. A module that is being
// removed stays. It returns fdbmodel.ErrTooLarge and ErrBadName. An unknown commit is retried
// and harmless.
func (s *Modules) Put(ctx context.Context, module []byte, alias string) (layout.Module, error) {
	if len(module) == 0 || len(module) > MaxSize {
		return layout.Module{}, fmt.Errorf("%w: module of %d bytes: use 1 to %d", fdbmodel.ErrTooLarge, len(module), MaxSize)
	}
	if alias != "" {
		if err := layout.CheckAlias(alias); err != nil {
			return layout.Module{}, err
		}
	}
	id, err := CID(module)
	if err != nil {
		return layout.Module{}, err
	}
	info := layout.Module{CID: id, Size: int64(len(module)), StoredAt: layout.Millis(s.cluster.Now())}
	for removed := true; removed; {
		if err := pieces.Put(ctx, s.cluster, module, func(i int) []byte { return s.keys.ModulePiece(id, i) }); err != nil {
			return info, err
		}
		if removed, err = s.putInfo(ctx, info, alias); err != nil {
			return info, err
		}
	}
	if alias != "" {
		info.Aliases = []string{alias}
	}
	return info, nil
}

// putInfo writes what makes the pieces of a module a stored one. It reports whether
// Remove has removed pieces meanwhile. They are removed all at once and are
// written in order, so if the first and the last are there, all of them are.
func (s *Modules) putInfo(ctx context.Context, info layout.Module, alias string) (removed bool, err error) {
	id, value := info.CID, layout.Encode(&info)
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-code"}, func(tx kv.Attempt) error {
		first, last := tx.Get(s.keys.ModulePiece(id, 0)), tx.Get(s.keys.ModulePiece(id, layout.Pieces(info.Size)-1))
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
		tx.AddReadConflictKey(s.keys.ModuleInfo(id))
		tx.Set(s.keys.ModuleInfo(id), value)
		if alias == "" {
			return nil
		}
		named := layout.Encode(&layout.AliasRecord{CID: id, At: info.StoredAt})
		tx.AddReadConflictKey(s.keys.Alias(alias))
		tx.Set(s.keys.Alias(alias), named)
		return nil
	})
	return removed, err
}

// Get returns a module's bytes, checked against its content id. It
// returns fdbmodel.ErrNotFound, and ErrBadRecord if the bytes do not match the content
// id.
func (s *Modules) Get(ctx context.Context, id string) ([]byte, error) {
	info, err := s.moduleInfo(ctx, id)
	if err != nil {
		return nil, err
	}
	module, err := pieces.Read(ctx, s.cluster, info.Size, func(i int) []byte { return s.keys.ModulePiece(id, i) })
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", id, err)
	}
	if found, err := CID(module); err != nil || found != id {
		return nil, fmt.Errorf("module %s: %w: its bytes have the id %s", id, layout.ErrBadRecord, found)
	}
	return module, nil
}

// Reader reads a module part by part. One goroutine uses it.
type Reader struct {
	modules *Modules
	id      string
	size    int64
}

// Open returns a reader of a module. What it reads is not checked against the
// content id. It returns fdbmodel.ErrNotFound.
func (s *Modules) Open(ctx context.Context, id string) (*Reader, error) {
	info, err := s.moduleInfo(ctx, id)
	return &Reader{s, id, info.Size}, err
}

// Size is how many bytes the module has.
func (r *Reader) Size() int64 { return r.size }

// Unit is what reads begin and end at multiples of, but for the end of the module.
func (r *Reader) Unit() int64 { return layout.ChunkSize }

// ReadAt fills p with what begins at offset. It returns fdbmodel.ErrNotFound if the module was
// removed. It may be called again.
func (r *Reader) ReadAt(ctx context.Context, p []byte, offset int64) error {
	end := offset + int64(len(p))
	if offset < 0 || end > r.size || offset%r.Unit() != 0 || end%r.Unit() != 0 && end != r.size {
		return fmt.Errorf("%d bytes at %d of a module of %d bytes: not multiples of %d", len(p), offset, r.size, r.Unit())
	}
	err := pieces.Fill(ctx, r.modules.cluster, p, layout.Pieces(r.size), int(offset/layout.ChunkSize),
		func(i int) []byte { return r.modules.keys.ModulePiece(r.id, i) })
	if err != nil {
		err = fmt.Errorf("module %s: %w", r.id, err)
	}
	return err
}

func (s *Modules) moduleInfo(ctx context.Context, id string) (layout.Module, error) {
	info := layout.Module{CID: id}
	err := s.cluster.View(ctx, func(tx kv.Attempt) error {
		key := s.keys.ModuleInfo(id)
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			return fmt.Errorf("module %s: %w", id, fdbmodel.ErrNotFound)
		}
		return layout.Decode(key, value, &info)
	})
	if err == nil && (info.Size < 1 || info.Size > MaxSize) {
		err = fmt.Errorf("module %s: %w: %d bytes", id, layout.ErrBadRecord, info.Size)
	}
	return info, err
}

// List returns all stored modules with their aliases, sorted by content id. A
// module whose record can't be read has the size 0, and an alias whose record
// can't is left out: the audit names both.
func (s *Modules) List(ctx context.Context) ([]layout.Module, error) {
	aliases := map[string][]string{}
	aliasPrefix := s.keys.Global(layout.SubAliases)
	err := s.cluster.EachKey(ctx, kv.Prefix(aliasPrefix), func(item kv.KeyValue) error {
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
	prefix := s.keys.Global(layout.SubModules)
	r := kv.Prefix(prefix)
	for {
		var page kv.Page
		err := s.cluster.View(ctx, func(tx kv.Attempt) error {
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
		r.Begin = kv.AfterPrefix(s.keys.ModuleOf(id))
		info, err := s.moduleInfo(ctx, id)
		switch {
		case errors.Is(err, fdbmodel.ErrNotFound): // it is still being written
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
