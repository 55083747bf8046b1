// Package transfer copies whole clusters: Migrate from one store to another,
// Backup to a file and Restore from it. A copy is valid only when it is
// complete: until then the target can't be opened, and an interrupted copy
// starts over. Before it becomes valid, it is read back, compared by a checksum
// with the source, and checked for every invariant.
//
// It copies keys as the table in package layout says, and knows nothing about
// the work of the futures. Stores may differ in their versions and limits; the
// format of the keys is the same on both sides.
package transfer
