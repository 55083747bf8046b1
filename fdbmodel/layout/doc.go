// Package layout defines how a cluster is laid out in a store: its keys,
// records and ids, and their limits. It makes and parses keys, encodes and
// decodes records, and describes both for people. All of it is pure: layout
// uses the types of the store contract, but no store, transaction or clock.
//
// A KeyKind says of a kind of keys which parts they have, and which record is in
// their values; a Table finds the kind of a key. Kinds are those of futures and
// workers. Rooms of the model define their own; package keyspace has the table of
// all. Keyspace makes the keys; it knows the cluster's name and shards. A value in
// a newer version of the format is ErrNewerRecord, and a damaged value is
// ErrBadRecord; both name the key.
//
// # Keys
//
// All keys begin with the tuple ("futura", CLUSTER). Below, s is the shard of a
// future (the last byte of its id), of a worker or of a session, and comes
// first, so that no shard's load falls on another's servers. A record's value is
// one byte of version, a versionstamp of twelve bytes for some, and a msgpack
// map. What each key holds, who writes it and the names of all fields are in
// docs/reference/keyspace.md.
//
// The place of an unclaimed future is a pure function of its records: the first
// one of Places that accepts them.
package layout
