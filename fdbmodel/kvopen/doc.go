// Package kvopen opens a store by its name, as it stands in flags and in
// configuration:
//
//	memory:             in this process, gone when it ends
//	embedded:DIR        in this process, durable in the directory DIR
//	embedded:DIR?sync=off
//	                    the same, but a crash may lose the last milliseconds
//	fdb:CLUSTERFILE     a FoundationDB cluster
//	fdb:                the cluster of FDB_CLUSTER_FILE, or else of
//	                    FoundationDB's default cluster file
//
// An application that needs one kind of store only opens it by its own package
// and links no other.
package kvopen
