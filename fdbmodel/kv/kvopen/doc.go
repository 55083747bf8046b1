// Package kvopen opens a store by its name, as it stands in flags and in
// configuration:
//
//	memory:             in this process, gone when it ends
//	embedded:DIR        in this process, durable in the directory DIR; or in the
//	                    process that has it open already and shares it.
//	                    ?share=off keeps it to this process, ?memory=2GiB has its
//	                    rows take about that much memory, and the others stay on
//	                    disk (default: a quarter of the machine's memory)
//	embedded:DIR?sync=off
//	                    the same, but a crash may lose the last milliseconds
//	remote:unix:PATH    the store that another process serves at a Unix socket
//	remote:tcp:HOST:PORT
//	                    the same over TCP. ?token-file=FILE names the token, else
//	                    FUTURA_REMOTE_TOKEN holds it; ?ca=FILE asks for TLS with
//	                    that certificate, ?tls=on for TLS with one that the system
//	                    trusts. Beyond this machine one of them is needed, unless
//	                    ?tls=off says that others may read along
//	fdb:CLUSTERFILE     a FoundationDB cluster
//	fdb:                the cluster of FDB_CLUSTER_FILE, or else of
//	                    FoundationDB's default cluster file
//
// An application that needs one kind of store only opens it by its own package
// and links no other.
package kvopen
