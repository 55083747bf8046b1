// Package transfer copies whole clusters: Migrate from one store to another,
// Backup to a file and Restore from it. A copy counts only when it is complete:
// until then the target can't be opened, and a copy that was cut off is begun
// again from the start. Before it counts, it is read back, compared by a checksum
// with what was read, and checked for every invariant.
//
// It moves keys as the table of package layout says, and knows nothing of what the
// futures do. Stores may differ in their versions and limits; the format of the
// keys is the same on both sides.
package transfer
