package kv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// exclusive is a store that reports its traits.
type exclusive struct{ kv.Database }

func (exclusive) Traits() kv.Traits { return kv.Traits{Exclusive: true, Opening: "1"} }

func TestTraitsOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, kv.Traits{}, kv.TraitsOf(nil))
	require.Equal(t, kv.Traits{}, kv.TraitsOf(struct{ kv.Database }{exclusive{}}))
	require.Equal(t, kv.Traits{Exclusive: true, Opening: "1"}, kv.TraitsOf(exclusive{}))
}
