// Package b7s runs real b7s nodes against the project's own peers, and against
// each other, on the loopback interface of a network of their own. It is a
// module of its own: nothing of b7s or of what its store needs becomes a
// dependency of the project.
//
// The nodes are programs that variables name; where one is unset, its tests are
// skipped and say so:
//
//   - FUTURA_B7S_PERSIST: node of b7s's branch batch-persist
//   - FUTURA_B7S_BATCHED: node of b7s's branch batched-execution-requests
package b7s
