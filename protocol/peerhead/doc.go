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
// A peer that is away, or that has work and is silent, for Options.Grace is buried: its
// futures go back, as after any death of a worker. One that comes back is registered
// again. What it ran meanwhile is taken all the same where nobody else has run it: each
// order has a ticket that only the head can have made, and with the ticket a result of
// an earlier membership, or of an earlier process of the head, counts for the same
// attempt of the same future.
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
// # Bounds
//
// A head has at most Options.MaxPeers peers, and each at most as many items as its
// slots, in orders of Options.MaxChunk items and Options.MaxOrder bytes. Results of
// earlier memberships are kept up to Options.MaxKept bytes in all. Values that come as
// blobs take up to 4 MiB each, two for a peer, and those beyond 4 MiB take up to 256 MiB
// together. The network bounds
// messages.
package peerhead
