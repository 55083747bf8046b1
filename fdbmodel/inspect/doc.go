// Package inspect shows people what a cluster holds: List finds futures, Explain
// says why a future is where it is, Future returns every key that concerns one,
// and Keys, Prefix and Key page through the store with each key and value in a
// form to read. CLICommands prints the commands of fdbcli that show the same.
//
// It only reads, and what it can't read it shows as that. It knows the layout of
// the keys and the members of the cluster, and none of the transactions that
// change them.
package inspect
