// Package read reads whole futures within a transaction: it asks for the rows
// that a caller names, all at once, and turns the keys that come back into rows.
// Rows of futures whose ids lie close together, as those of a batch, are read
// with one range.
//
// It knows the layout of the keys and the contract of a store. It begins no
// transaction and writes nothing; which reads add conflicts is the caller's
// choice of reader.
package read
