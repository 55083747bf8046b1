package audit

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkActors compares the head, the state and the parts of an actor.
func (p *page) checkActors(it *item) {
	ref := actors.Ref{Type: it.Text("type"), Key: it.Text("key")}
	if it.Kind.Name == actors.KeyHead {
		if err := ref.Check(); err != nil {
			p.broken(InvariantActor, it.Raw, "%v", err)
		}
		p.checkHead(it, ref)
		return
	}
	key, size := actors.Keys(p.keys).Head(ref), int64(len(it.stored))
	part, isPart := it.Record.(*actors.PartRecord)
	if isPart && it.err == nil {
		if err := (&actors.Part{Name: it.Text("name"), PartRecord: *part}).Check(ref); err != nil {
			p.broken(InvariantActor, it.Raw, "%v", err)
		}
	}
	asked := p.tx.Get(key)
	p.later(func(ctx context.Context) error {
		value, err := asked.Wait(ctx)
		if err != nil {
			return err
		}
		var head actors.HeadRecord
		switch {
		case isPart && (value == nil || layout.Decode(key, value, &head) == nil && !head.Parts):
			p.broken(InvariantActor, it.Raw, "actor %s has a part, and no head that says so", ref)
		case isPart:
		case value == nil:
			p.broken(InvariantActor, it.Raw, "actor %s has a state and no head", ref)
		case layout.Decode(key, value, &head) == nil && (head.Size != size || size > 0 && !head.Beside()):
			p.broken(InvariantActor, it.Raw, "actor %s has a state of %d bytes beside its head, which says %d", ref, size,
				head.Size)
		}
		return nil
	})
}

// checkHead checks the head of an actor, and that its state is where it is to be.
func (p *page) checkHead(it *item, ref actors.Ref) {
	head, is := it.Record.(*actors.HeadRecord)
	if !is || it.err != nil {
		return
	}
	within := len(head.State)
	switch {
	case !head.IsSound():
		p.broken(InvariantActor, it.Raw, "the head of actor %s can't be: version %d, %d bytes", ref, head.Version, head.Size)
	case within > 0 && int64(within) != head.Size, within > actors.MaxInHead:
		p.broken(InvariantActor, it.Raw, "actor %s has a state of %d bytes, of which its head has %d", ref, head.Size, within)
	case head.Beside():
		p.require(actors.Keys(p.keys).State(ref), func() {
			p.broken(InvariantActor, it.Raw, "actor %s has a head and no state", ref)
		})
	}
}
