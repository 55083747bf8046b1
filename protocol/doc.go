// Package protocol has the messages that heads, workers and clients send to each
// other, and their JSON: those of b7s, as its nodes send them, and Futura's own.
//
// A message is one JSON object with a "type". Decode reads a message of any
// dialect and returns a pointer to one of the types of this package; Encode
// writes one in the Dialect of the peer that gets it. Both check it: a message
// that breaks a rule of its type, or a limit of Limits, is refused with an
// error that names the field. Nothing here opens a connection, and no text of a
// message may be used as a path.
//
// Peers of b7s ignore fields and drop types that they don't know. So Futura's
// own fields are written in its own dialect only, which two nodes speak after
// both have announced StreamFutura; its own messages are sent there alone.
package protocol
