package transfer

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
)

// Checksum returns the checksum of a copy of the cluster in its present state.
func Checksum(ctx context.Context, c *fdbmodel.Cluster) (string, error) {
	tally, err := newCopySource(c, nil).tally(ctx, func(int64) {})
	if err != nil {
		return "", err
	}
	return tally.checksum(), nil
}
