// Package batch runs one function on many lists of arguments: the batch
// execution of Bless network's b7s, on any of several stores.
//
// A batch is a template (function, method, config) and a list of lists of
// arguments. A template with one list is a work item. A chunk is the work items
// that are given to one worker. A batch is over when every item is done or has
// failed for good.
//
// # States
//
// Items, chunks and batches have the same integers for their states as in b7s:
//
//	  0  created              an item waits to be given to a worker
//	  1  in progress          a worker has it
//	100  done                 it ended with exit code 0
//	 -1  failed               it will be tried again
//	 -2  permanently failed   it will not, with the reason
//
// # Identity
//
// The id of a work item is the MD5 of what it runs, so that the id follows from
// the arguments; see ItemID. Items that run the same have the same id, and each
// of them is run and has a result: within a batch an item is named by its
// index, its place in the list of arguments.
package batch
