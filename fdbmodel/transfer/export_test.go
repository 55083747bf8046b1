package transfer

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
)

// Checksum is that of a copy of the cluster as it is.
func Checksum(ctx context.Context, c *fdbmodel.Cluster) (string, error) {
	tally, err := newCopySource(c).tally(ctx, func(int64) {})
	if err != nil {
		return "", err
	}
	return tally.checksum(), nil
}
