// Package sharing lets the processes of one user use one embedded store together. The process
// that has the store open owns it, and serves it to the others over a Unix socket that only
// this user can reach. When the owner ends, or is killed, another process takes over: it opens
// the store from the disk, with all that was acknowledged, and serves it on.
//
// The lock of the store's directory alone decides which process is the owner. While none is,
// transactions fail with kv.ErrUnavailable, which kv.Transact retries, and a commit that was
// under way ends with kv.ErrUnknownResult. An owner that is stopped, but not dead, keeps the
// store: its lock holds.
//
// The idea is that of a leader which is elected by a lock on storage that all can reach, as in
// FoundationDB's or Chubby's coordination, for processes of one machine.
package sharing
