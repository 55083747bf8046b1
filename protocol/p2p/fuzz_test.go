package p2p

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	wire "github.com/futura-run/futura/protocol"
)

// FuzzReadMessage compares a message that comes in pieces with what it should be.
func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("{}"), uint16(10), true, false)
	f.Add([]byte("{}\nrest"), uint16(2), true, true)
	f.Add([]byte("{\n}"), uint16(2), false, true)
	f.Add(bytes.Repeat([]byte("x"), 5000), uint16(5000), true, false)
	f.Add(bytes.Repeat([]byte("x"), 40000), uint16(39999), true, false)
	f.Fuzz(func(t *testing.T, sent []byte, limit uint16, newline, slow bool) {
		var r io.Reader = bytes.NewReader(sent)
		if slow {
			r = iotest.OneByteReader(r)
		}
		asked := int64(0)
		got, err := readMessage(r, int(limit), newline, func(n int64) error {
			require.Greater(t, n, asked)
			asked = n
			return nil
		})
		want := sent
		if at := bytes.IndexByte(sent, '\n'); newline && at >= 0 {
			want = sent[:at]
		}
		if len(want) > int(limit) {
			require.ErrorIs(t, err, ErrTooLarge)
			return
		}
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		require.LessOrEqual(t, cap(got), int(limit)+1)
		require.LessOrEqual(t, int64(cap(got)), small+asked, "no more than this is held without asking")
	})
}

func TestReadMessageErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := readMessage(iotest.ErrReader(broken), 10, false, nil)
	require.ErrorIs(t, err, broken)
	large := strings.NewReader(strings.Repeat("x", small+1))
	_, err = readMessage(large, 2*small, false, func(int64) error { return broken })
	require.ErrorIs(t, err, broken)
}

func FuzzBlobLines(f *testing.F) {
	for _, line := range []string{
		`{"id":"bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku","offset":7}`,
		`{"size":7,"code":"200"}`, `{"size":-1,"code":"200"}`, `{"size":1e300,"code":"200"}`, `{"code":"404"}`,
		`{"offset":-1}`, "", "null", strings.Repeat(" ", 600),
	} {
		f.Add([]byte(line+"\nbytes"), int64(3), int64(100))
	}
	f.Fuzz(func(t *testing.T, sent []byte, offset, limit int64) {
		r := bufio.NewReaderSize(bytes.NewReader(sent), blobPiece)
		line, err := readLine(r)
		if err != nil {
			return
		}
		line = bytes.Clone(line)
		require.Less(t, len(line), wire.MaxLine)
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, sent[len(line)+1:], rest, "no byte of the content is lost")
		if request, err := parseBlobRequest(line); err == nil {
			require.GreaterOrEqual(t, request.Offset, int64(0))
			hash, err := ParseBlobID(request.ID)
			require.NoError(t, err)
			require.Equal(t, request.ID, BlobID(hash))
		}
		offset, limit = max(0, offset), max(0, limit)
		if answer, err := parseBlobAnswer(line, offset, limit); err == nil {
			require.Equal(t, wire.CodeOK, answer.Code)
			require.LessOrEqual(t, offset, answer.Size)
			require.LessOrEqual(t, answer.Size, limit)
		}
	})
}

func FuzzPeerIDs(f *testing.F) {
	f.Add("12D3KooWD1JCqEYX8cDiNaWXkSFbLhCCYVs524GSrzw4poUray5u")
	f.Add("QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParsePeerID(text)
		if err != nil {
			require.ErrorIs(t, err, ErrPeerID)
			return
		}
		again, err := ParsePeerID(string(id))
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}
