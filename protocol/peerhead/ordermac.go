package peerhead

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/futura-run/futura/protocol"
)

// orderMAC proves that the head gave these items, in this order, to a peer in a chunk.
// Only the head can make it, and each process of the head makes the same.
func orderMAC(key []byte, peer PeerID, chunk string, items []protocol.OrderItem) string {
	mac := hmac.New(sha256.New, key)
	field := func(text string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		mac.Write(size[:])
		mac.Write([]byte(text))
	}
	field("futura order 1")
	field(string(peer))
	field(chunk)
	for i := range items {
		var attempt [8]byte
		binary.BigEndian.PutUint64(attempt[:], uint64(items[i].Attempt))
		field(items[i].ID)
		mac.Write(attempt[:])
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// sameMAC compares in constant time.
func sameMAC(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
