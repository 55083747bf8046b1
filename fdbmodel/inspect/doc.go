// Package inspect shows the contents of a cluster: List finds futures, Explain
// says why a future is where it is, Future returns every key that concerns one,
// and Keys, Prefix and Key page through the store with each key and value in
// readable form. CLICommands returns the fdbcli commands that show the same.
//
// It only reads, and marks records that it can't read. It knows the layout of
// the keys and the members of the cluster, but none of the transactions that
// change them.
package inspect
