// Package peerhead is a head's side of peers: workers that hold no credentials of the
// store and are reached by messages, such as over libp2p.
//
// Each peer is a worker of the cluster. The head registers it, beats for it, claims
// futures in its name, sends them to it in orders, and ends them as the peer says. So
// reaping, limits, counters and mixed clusters need nothing special, and a peer that
// restarts gets a new fence.
//
// # Which answers count
//
// A peer can end only what it was given: a result counts for the attempt of the item,
// at the place in the chunk, that the head sent to this peer, and once. Others change
// nothing. What a peer says of itself, its name and labels, counts for peers that
// Options.Trusted names. Execution is at least once, as with every worker; results
// count exactly once.
//
// # Which peers are lost
//
// A peer that is away, or that has work and is silent, for Options.Grace is reaped: its
// futures go back, as after any death of a worker. One that comes back is registered
// again. What it ran meanwhile is taken all the same, unless another peer has run it: each
// order has a MAC that only the head can have made, and with the MAC a result of an
// earlier membership, or of an earlier process of the head, counts for the same attempt
// of the same future.
//
// # Which peers get less
//
// A peer has a score: the part of what it was asked that it answered of late. Orders that it
// refused or lost, items that it gave back, answers to what it was not given, and what others
// contradict lower it by a sixteenth each, answers raise it as much, and of what it lacks half
// is forgiven in 2 min. It is given the square of its score of its slots at a time, and one at
// least. Errors of functions are answers. Scores of peers that went are kept, of Options.MaxPeers
// at most.
//
// Whatever a peer offers, it begins with two items at a time. Each answer allows it one more, and
// so does each item that has run for a heartbeat; each fault halves that. Below 16 it is on trial:
// an order of which it says nothing for 0.7 s is rejected, unless no other worker could run it.
// A future that is rejected is passed over by its peer for a while, and taken by others at once.
//
// # Bounds
//
// A head has at most Options.MaxPeers peers, and each at most as many items as its
// slots, in orders of Options.MaxChunk items and Options.MaxOrder bytes. Results of
// earlier memberships are cached up to Options.MaxCached bytes in all. The network bounds
// messages.
//
// # Large values
//
// A value that a peer has as a blob goes from the network into the store piece by piece,
// in less than 1 MB of memory, two of a peer at a time. It is fetched by the worker that
// stands for the peer, for as long as it comes at the network's least rate: neither the
// answer to the peer nor the attempt's timeout cuts it off, the deadline of its future does. The
// peer keeps it until it is stored. If it was cut off, the next attempt that answers with the
// same content fetches the rest, if it begins within 10 min and before the store is swept.
// A late value stays with its peer until its attempt is claimed, and values that are
// compared are fetched once enough peers agree on their content ids. Modules are read in
// pieces of 512 KiB as peers take them, which peers share.
package peerhead
