package peerhead

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/modules"
)

// TestModulesThatAreSentAreBounded has peers read many large modules slowly.
func TestModulesThatAreSentAreBounded(t *testing.T) {
	t.Parallel()
	c := &moduleCache{by: map[string]*sentModule{}}
	code := make([]byte, maxSending/4)
	load := func() ([]byte, error) { return code, nil }
	var sent []*sentModule
	for i := range 3 {
		m := c.use(fmt.Sprint(i), load)
		require.NoError(t, m.err)
		sent = append(sent, m)
	}
	sent = append(sent, c.use("3", load))
	refused := c.use("4", load)
	require.ErrorIs(t, refused.err, errSending)
	c.leave("4", refused)
	again := c.use("0", load)
	require.NoError(t, again.err, "it is in memory already")
	c.leave("0", again)
	c.leave("1", sent[1])
	m := c.use("4", load)
	require.NoError(t, m.err)
	c.leave("4", m)
	for _, i := range []int{0, 2, 3} {
		c.leave(fmt.Sprint(i), sent[i])
	}
	require.Zero(t, c.bytes)
	require.Empty(t, c.by)
}

// TestModulesThatAreReadAtOnceAreBounded has each module be asked for while the one before
// is read.
func TestModulesThatAreReadAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	c := &moduleCache{by: map[string]*sentModule{}}
	deep := 0
	var read func() ([]byte, error)
	read = func() ([]byte, error) {
		deep++
		id := fmt.Sprint(deep)
		c.leave(id, c.use(id, read))
		return []byte{0}, nil
	}
	c.leave("0", c.use("0", read))
	require.Equal(t, maxSending/modules.MaxSize, deep)
	require.Zero(t, c.bytes)
}
