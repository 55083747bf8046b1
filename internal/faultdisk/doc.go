// Package faultdisk is a file system in memory for tests, which keeps apart what
// the system has in its cache and what is on the disk. It loses what was not
// synced, by whole sectors and parts of them, flips bits, runs full, is read-only,
// lacks descriptors, and fails any call, a sync in the way of Linux: what it should
// have written stays readable and is never written.
package faultdisk
