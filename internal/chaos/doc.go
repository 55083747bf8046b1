// Package chaos holds tests of a cluster of processes on a real FoundationDB
// server: workers and clients that are killed, stopped and continued, and servers
// that are killed and started again. It is empty unless the tests are built with
// -tags fdb.
package chaos
