package modeltest

import (
	"context"
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/module"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/modules"
)

// moduleFunction is the function of the module that the machine stores and removes.
const moduleFunction = "wasm:bafkreid22a25tmxdexyq2cmr6w3z4anbbonycsec454ni3btl3ab7fhh2i"

func moduleBytes() []byte { return []byte("the machine's module") }

func (m *Machine) store(ctx context.Context) (change, error) {
	module, err := modules.Of(m.C).Put(ctx, moduleBytes(), "m")
	m.logf("store %s: %v", module.CID, err)
	if err == nil && "wasm:"+module.CID != moduleFunction {
		m.fail("the module's function is wasm:%s", module.CID)
	}
	return none, err
}

// isStored reports whether the module is stored.
func (m *Machine) isStored() bool {
	return m.C.View(context.Background(), func(tx kv.Attempt) error {
		return module.Require(context.Background(), tx, m.C.Keys(), moduleFunction[len("wasm:"):])
	}) == nil
}

// unstore removes the module, rarely by force.
func (m *Machine) unstore(ctx context.Context) (change, error) {
	force := m.random.IntN(5) == 0
	_, err := modules.Of(m.C).Remove(ctx, moduleFunction[len("wasm:"):], force)
	m.logf("unstore (force %t): %v", force, err)
	m.unstored = err == nil && !force
	refused := []error{fdbmodel.ErrNotFound, fdbmodel.ErrInUse, fdbmodel.ErrTransition}
	if slices.ContainsFunc(refused, func(as error) bool { return errors.Is(err, as) }) {
		err = nil
	}
	return none, err
}
