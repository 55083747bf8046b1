package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var someHead = Head{Cluster: "c", Futures: 3, CreatedAt: 1_900_000_000_000}

type item struct{ key, value string }

func write(t require.TestingT, items []item) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, someHead)
	require.NoError(t, err)
	for _, i := range items {
		require.NoError(t, w.Add([]byte(i.key), []byte(i.value)))
	}
	end, err := w.Close()
	require.NoError(t, err)
	require.Equal(t, int64(len(items)), end.Items)
	return b.Bytes()
}

func read(file []byte) (items []item, err error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		key, value, err := r.Next()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		items = append(items, item{string(key), string(value)})
	}
}

func several(n, size int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{fmt.Sprintf("key %06d", i), string(bytes.Repeat([]byte{byte(i)}, size))}
	}
	return items
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, items := range [][]item{nil, several(1, 0), several(5, 10), several(50, 90_000)} {
		file := write(t, items)
		got, err := read(file)
		require.NoError(t, err)
		require.Equal(t, items, got)
		head, end, err := Verify(iotest.OneByteReader(bytes.NewReader(file)))
		require.NoError(t, err)
		require.Equal(t, someHead, head)
		require.Equal(t, int64(len(items)), end.Items)
		require.Len(t, end.SHA256, 64)
	}
	rapid.Check(t, func(t *rapid.T) {
		var items []item
		for _, key := range rapid.SliceOfDistinct(rapid.String(), rapid.ID).Draw(t, "keys") {
			items = append(items, item{key, rapid.String().Draw(t, "value")})
		}
		sortItems(items)
		got, err := read(write(t, items))
		require.NoError(t, err)
		require.Equal(t, items, got)
	})
}

func sortItems(items []item) {
	for i := range items {
		for j := i; j > 0 && items[j].key < items[j-1].key; j-- {
			items[j], items[j-1] = items[j-1], items[j]
		}
	}
}

func TestAHeadThatIsTooLargeIsNotWritten(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	_, err := NewWriter(&file, Head{Rows: []string{strings.Repeat("x", MaxFrame)}})
	require.ErrorIs(t, err, ErrTooLarge)
	require.Zero(t, file.Len())
}

// TestEveryFlippedBitAndCutIsFound changes a file in each place.
func TestEveryFlippedBitAndCutIsFound(t *testing.T) {
	t.Parallel()
	file := write(t, several(3, 20))
	for at := range file {
		for bit := range 8 {
			changed := bytes.Clone(file)
			changed[at] ^= 1 << bit
			_, _, err := Verify(bytes.NewReader(changed))
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrNewer) ||
				errors.Is(err, ErrNoBackup), "byte %d, bit %d: %v", at, bit, err)
		}
		_, _, err := Verify(bytes.NewReader(file[:at]))
		if at < len(magic) {
			require.ErrorIs(t, err, ErrNoBackup, "%d", at)
		} else {
			require.ErrorIs(t, err, ErrTruncated, "%d", at)
		}
	}
	_, _, err := Verify(bytes.NewReader(append(bytes.Clone(file), 0)))
	require.ErrorIs(t, err, ErrDamaged)
}

// TestFramesMissing takes whole frames away, so that each that is left is sound.
func TestFramesMissing(t *testing.T) {
	t.Parallel()
	file := write(t, several(9, 90_000))
	frames := [][]byte{}
	for rest := file[headLength:]; len(rest) > 0; {
		n := 9 + int(binary.BigEndian.Uint32(rest))
		frames, rest = append(frames, rest[:n]), rest[n:]
	}
	require.Len(t, frames, 5)
	for skip := range frames {
		b := bytes.Clone(file[:headLength])
		twice := bytes.Clone(b)
		for i, frame := range frames {
			twice = append(twice, frame...)
			if i == skip {
				twice = append(twice, frame...)
				continue
			}
			b = append(b, frame...)
		}
		_, _, err := Verify(bytes.NewReader(b))
		require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrTruncated), "%d: %v", skip, err)
		_, _, err = Verify(bytes.NewReader(twice))
		require.ErrorIs(t, err, ErrDamaged, "%d", skip)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	file := write(t, nil)
	binary.BigEndian.PutUint16(file[len(magic):], Version+1)
	_, _, err := Verify(bytes.NewReader(file))
	require.ErrorIs(t, err, ErrNewer)
	binary.BigEndian.PutUint16(file[len(magic):], 0)
	_, _, err = Verify(bytes.NewReader(file))
	require.ErrorIs(t, err, ErrDamaged)
}

func TestErrorsOfOthersPass(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	file := write(t, several(3, 20))
	for at := range file {
		_, _, err := Verify(io.MultiReader(bytes.NewReader(file[:at]), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken, "%d", at)
	}
	w, err := NewWriter(io.Discard, someHead)
	require.NoError(t, err)
	require.ErrorIs(t, w.Add(make([]byte, MaxKey+1), nil), ErrTooLarge)
	require.ErrorIs(t, w.Add(nil, make([]byte, MaxValue+1)), ErrTooLarge)
}

func TestErrorStays(t *testing.T) {
	t.Parallel()
	file := write(t, several(3, 20))
	r, err := NewReader(bytes.NewReader(file[:len(file)-1]))
	require.NoError(t, err)
	for range 3 {
		_, _, err = r.Next()
		require.NoError(t, err)
	}
	for range 2 {
		_, _, err = r.Next()
		require.ErrorIs(t, err, ErrTruncated)
	}
	require.Zero(t, r.End())
}

func FuzzReader(f *testing.F) {
	f.Add(write(f, several(3, 20)))
	f.Add(write(f, nil))
	f.Add(append([]byte(magic), 0, 1, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, file []byte) {
		items, err := read(file)
		if err != nil {
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrNewer) ||
				errors.Is(err, ErrNoBackup), "%v", err)
			return
		}
		again, err := read(write(t, items))
		require.NoError(t, err)
		require.Equal(t, items, again)
	})
}
