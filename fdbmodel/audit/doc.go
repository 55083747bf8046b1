// Package audit holds a cluster against what must always be true of it: Check
// reads every key and reports each broken Invariant with the keys that show it.
//
// It knows the layout of the keys and what the transactions of the model promise.
// It reads beside workers, clients and janitors, a part of the keys at a time, in
// bounded memory, and writes nothing. What is allowed to be for a while, as the
// claims of a dead worker, is a note and no problem.
package audit
