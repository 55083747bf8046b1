package inspect

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// subProbe is a subspace that has no keys.
const subProbe = "probe"

// Unwritable returns why the store can't be written, a kv.ErrReadOnly with the way out, and nil if it can be or nothing
// has tried. A process that reaches the store through another one tries: it commits the removal of a key that does not
// exist. Elsewhere the store tells what the last commit met, see kv.Traits. An unknown commit
// is retried and harmless.
func Unwritable(ctx context.Context, c *fdbmodel.Cluster) (why, err error) {
	traits := kv.TraitsOf(c.Database())
	if traits.Unwritable != nil || traits.Connection == "" {
		return traits.Unwritable, nil
	}
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-probe", NoSync: true}, func(tx kv.Attempt) error {
		tx.Clear(c.Keys().Global(subProbe))
		return nil
	})
	if errors.Is(err, kv.ErrReadOnly) {
		return err, nil
	}
	return nil, err
}
