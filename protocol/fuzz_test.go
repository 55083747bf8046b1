package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

func FuzzDecode(f *testing.F) {
	for _, g := range goldens() {
		f.Add(readGolden(f, g.file))
	}
	f.Add([]byte(`{"code":200,"type":"MsgAck","TYPE":"MsgHealthCheck","x":{"a":1,"type":"MsgHello"}}`))
	f.Add([]byte(`{"type":"MsgAck","x":"\",\"type\":\"MsgHello","type":"MsgHealthCheck"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := protocol.GossipLimits().Decode(data)
		if err != nil {
			require.True(t, isDocumented(err), "%v", err)
			return
		}
		var envelope struct {
			Type string `json:"type"`
		}
		require.NoError(t, json.Unmarshal(data, &envelope))
		require.Equal(t, envelope.Type, m.Type())
		for _, d := range dialects() {
			written, err := protocol.Encode(m, d)
			if err != nil && d != protocol.DialectFutura {
				require.ErrorIs(t, err, errOfDialect(m), "%v", err)
				continue
			}
			require.NoError(t, err)
			require.NotContains(t, string(written), "\n")
			again, err := protocol.Decode(written)
			require.NoError(t, err, "%s", written)
			require.Equal(t, m.Type(), again.Type())
			rewritten, err := protocol.Encode(again, d)
			require.NoError(t, err)
			require.Equal(t, string(written), string(rewritten))
		}
	})
}

// errOfDialect is why a valid message can't be written in a dialect of b7s.
func errOfDialect(m protocol.Message) error {
	if _, ok := m.(*protocol.WorkOrderBatch); ok {
		return protocol.ErrInvalid // its method is that of a module
	}
	return protocol.ErrDialect
}

func FuzzBlobLines(f *testing.F) {
	f.Add([]byte(`{"id":"bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy","offset":7}` + "\n"))
	f.Add([]byte(`{"code":"200","size":67108864,"message":"here"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if request, err := protocol.DecodeBlobRequest(data); err == nil {
			line, err := request.Line()
			require.NoError(t, err)
			again, err := protocol.DecodeBlobRequest(line)
			require.NoError(t, err)
			require.Equal(t, request, again)
		} else {
			require.True(t, isDocumented(err), "%v", err)
		}
		if response, err := protocol.DecodeBlobResponse(data); err == nil {
			line, err := response.Line()
			require.NoError(t, err)
			again, err := protocol.DecodeBlobResponse(line)
			require.NoError(t, err)
			require.Equal(t, response, again)
		}
	})
}
