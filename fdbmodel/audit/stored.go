package audit

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/internal/step"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/fdbmodel/read"
)

// largeValue is a large value that a future refers to.
type largeValue struct {
	id  layout.ID
	ref layout.ChunkRef
}

// checkChunk looks for the record that a large value belongs to.
func (p *page) checkChunk(it *item) {
	ref := layout.ChunkRef{Kind: it.Text("kind"), Token: it.Text("token")}
	if !p.first(p.keys.Chunks(it.ID, ref)) {
		return
	}
	p.row(it.ID, func(r *layout.Row) {
		if r.RefersTo(ref) || maintenance.Of(p.cluster).MayRefer(r, ref) {
			return
		}
		referred := func(context.Context) (bool, error) { return false, nil }
		if ref.Kind == layout.ChunkStep {
			referred = step.IsReferred(p.tx, step.Keys(p.keys), it.ID, ref)
		}
		p.later(func(ctx context.Context) error {
			is, err := referred(ctx)
			if err == nil && !is {
				p.note(InvariantChunks, it.Raw, "nothing refers to this %s of future %s; it is to be swept", ref.Kind, r.ID)
			}
			return err
		})
	})
}

// checkPieces reads a large value, as long as its record refers to it.
func (k *checker) checkPieces(ctx context.Context, value largeValue) error {
	ref := value.ref
	var wrong string
	if ref.Size < 0 || ref.Count != layout.Pieces(ref.Size) {
		wrong = fmt.Sprintf("%s of future %s has %d bytes in %d pieces", ref.Kind, value.id, ref.Size, ref.Count)
	}
	for first := 0; first < ref.Count && wrong == ""; first += piecesAtOnce {
		err := k.cluster.View(ctx, func(tx kv.Attempt) (err error) {
			wrong, err = k.wrongPiece(ctx, tx.Snapshot(), value, first)
			return err
		})
		if err != nil {
			return err
		}
	}
	if wrong != "" {
		var f findings
		f.broken(InvariantChunks, k.keys.Chunks(value.id, ref), "%s", wrong)
		k.take(&f)
	}
	return nil
}

// piecesAtOnce is how many pieces of a large value are read at a time.
const piecesAtOnce = 10

// wrongPiece says what is wrong with some pieces of a large value, from first
// on. It returns nothing if the record refers to the value no more.
func (k *checker) wrongPiece(ctx context.Context, tx kv.Reader, value largeValue, first int) (wrong string, err error) {
	ref := value.ref
	n := min(piecesAtOnce, ref.Count-first)
	refers := func(ctx context.Context) (bool, error) {
		row, _, err := read.Record(tx, k.keys, value.id).Wait(ctx)
		return row.RefersTo(ref), err
	}
	if ref.Kind == layout.ChunkStep {
		refers = step.IsReferred(tx, step.Keys(k.keys), value.id, ref)
	}
	pieces := make([]kv.Pending[[]byte], n)
	for i := range pieces {
		pieces[i] = tx.Get(k.keys.Chunk(value.id, ref, first+i))
	}
	if referred, err := refers(ctx); err != nil || !referred {
		return "", err
	}
	for i := range pieces {
		piece, err := pieces[i].Wait(ctx)
		if err != nil {
			return "", err
		}
		if want := min(layout.ChunkSize, int(ref.Size)-(first+i)*layout.ChunkSize); len(piece) != want {
			wrong = fmt.Sprintf("piece %d of %d of the %s of future %s has %d bytes, not %d",
				first+i+1, ref.Count, ref.Kind, value.id, len(piece), want)
		}
	}
	return wrong, nil
}

// checkModule checks a stored module, with all of its pieces.
func (p *page) checkModule(items []item) {
	var info *layout.Module
	size, pieces := int64(0), int64(0)
	sound := true
	for i := range items {
		it := &items[i]
		switch {
		case it.err != nil:
			return
		case it.Record != nil:
			info = it.Record.(*layout.Module)
		default:
			sound = sound && it.Int("piece") == pieces && size == pieces*layout.ChunkSize
			pieces++
			size += int64(len(it.stored))
		}
	}
	switch {
	case info == nil:
		p.note(InvariantModule, items[0].Raw, "the module is being written, or its writer has died")
	case !sound || size != info.Size:
		p.broken(InvariantModule, items[0].Raw, "the module has %d bytes in %d pieces, not %d in %d",
			size, pieces, info.Size, layout.Pieces(info.Size))
	}
}

// checkAlias looks for the module that an alias stands for.
func (p *page) checkAlias(it *item) {
	if it.err != nil {
		return
	}
	cid := it.Record.(*layout.AliasRecord).CID
	p.require(p.keys.ModuleInfo(cid), func() {
		p.broken(InvariantAlias, it.Raw, "the alias stands for module %.80s, which is not stored", cid)
	})
}

// checkBatch looks for a batch in the list of batches.
func (p *page) checkBatch(it *item) {
	if it.err != nil {
		return
	}
	id := it.Text("batch")
	p.require(p.keys.BatchAt(it.Record.(*layout.BatchRecord).CreatedAt, id), func() {
		p.broken(InvariantBatch, it.Raw, "batch %s is not in the list of batches", id).
			by(set(p.keys.BatchAt(it.Record.(*layout.BatchRecord).CreatedAt, id), nil))
	})
}

// checkPartOfBatch looks for the batch that a key names.
func (p *page) checkPartOfBatch(it *item) {
	id := it.Text("batch")
	all := p.tx.GetRange(kv.Prefix(p.keys.Batch(id)), kv.RangeOptions{Limit: 1})
	p.require(p.keys.BatchRecord(id), func() {
		of := p.broken(InvariantBatch, it.Raw, "there is no batch %s", id)
		p.later(func(ctx context.Context) error {
			page, err := all.Wait(ctx)
			if len(page.Items) == 0 {
				of.by(drop(it.Raw))
			}
			return err
		})
	})
}

// checkSettings checks the config, and the limits of the cluster.
func (p *page) checkSettings(it *item) {
	limits, are := it.Record.(*quota.Limits)
	switch {
	case it.Kind.Name == layout.KeyConfig:
		p.checkConfig(it)
	case it.err == nil && are && (limits.Validate() != nil || !limits.Any()):
		p.broken(InvariantConfig, it.Raw, "the cluster has limits that can't be: %+v", *limits)
	}
}

// checkConfig compares the immutable settings of the config with those in use.
func (p *page) checkConfig(it *item) {
	p.configured = true
	if it.err != nil {
		return
	}
	config, opened := it.Record.(*layout.Config), p.cluster.Config()
	if config.Format != opened.Format || config.Shards != opened.Shards || config.Validate() != nil {
		p.broken(InvariantConfig, it.Raw, "the cluster was opened with %+v, and has %+v", opened, *config)
	}
}
