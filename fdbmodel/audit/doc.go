// Package audit checks a cluster against its invariants: Check reads every key
// and reports each broken Invariant with the keys that show it. Repair makes keys
// right that follow from others.
//
// It knows the layout of the keys and the guarantees of the model's
// transactions. It reads while workers, clients and janitors run, a part of the
// keys at a time, in bounded memory, and Check writes nothing. A temporary condition
// that is allowed, such as the claims of a dead worker, is reported as a note,
// not as a problem.
package audit
