// Package peer serves an object store to other processes, and gets objects from
// those that are served.
//
// Both sides prove that they know a token, which does not go over the connection.
// A client verifies each piece as it arrives, so it takes an object from any
// sources, goes on with what is missing after a cut, and never returns bytes that
// don't have the object's hash. On one host it maps the file of the process that
// has the object, over a Unix socket, and copies nothing.
package peer
