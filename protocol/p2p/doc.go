// Package p2p is a libp2p host that moves opaque messages and blobs between
// peers. It knows neither what the messages say nor who sends which.
//
// Two stream protocols carry messages. ProtocolB7s is that of b7s nodes: one
// message per stream, no answer. ProtocolFutura is that of Futura's own nodes: one
// message, and one answer on the same stream. Published messages go over gossip
// topics, signed by their authors. A host finds out by itself which protocols a
// connected peer speaks.
//
// # Transport
//
// Connections are TCP, or WebSocket over TCP, with TLS 1.3 or Noise and yamux.
// QUIC, WebTransport and WebRTC are not linked. A host opens no port on a router,
// uses no relay, and has no DHT: peers dial addresses that they were given.
// Without Options.Listen it listens on loopback alone.
//
// # Bounds
//
// All that a peer can make a host hold is bounded, for each peer and for all
// together, by Limits. One peer holds at most
//
//   - Limits.PeerMemory of messages that it sent and that are not handled yet, beyond the
//     first 32 KiB of each,
//   - 32 KiB for each of Limits.PeerStreams in each direction,
//   - Limits.PeerBuffers of receive buffers of its connections,
//   - Limits.MaxGossip and 4 KiB of a published message that is still coming,
//   - 128 KiB for each of the 2 * Limits.PeerBlobs blobs that move.
//
// All peers together hold at most Limits.Memory, Limits.Buffers, Limits.GossipMemory
// for published messages that wait, 32 KiB for each of Limits.Streams in each direction,
// and the last two of the list for each of Limits.Peers and 2 * Limits.Blobs. Limits count
// bytes of content; the machine's memory may be up to twice as much for a moment, while a
// message grows.
//
// Whatever goes beyond waits, and is cut off at its deadline. A stream lives for
// Limits.MessageTimeout and one second more for each Limits.MinRate bytes that it
// has moved. Small messages, up to 32 KiB, wait for no others. A larger one takes memory as it
// grows, and is cut off once half of Limits.MessageTimeout has brought no byte. Where memory
// is short, peers take turns: a turn is enough memory for the largest message, and lasts half
// of Limits.MessageTimeout until all of it has come. So a slow peer holds up small messages of
// others never, and large ones not for long; what is cut off is for its sender to repeat. A
// message above Limits.MaxMessage resets its stream. Topics that a host has not joined leave no
// trace in it.
package p2p
