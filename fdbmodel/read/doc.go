// Package read reads whole futures within a transaction: it requests all rows
// that a caller names at once, and assembles them from the returned keys. Rows
// of futures whose ids lie close together, such as those of a batch, are read
// with one range. It also reads where the copies of a result are, and what pins it.
//
// It knows the layout of the keys and the contract of a store. It begins no
// transaction and writes nothing; the reader that the caller passes decides
// which reads add conflicts.
package read
