// Package ferrettest runs batch/mongostore's tests on an embedded FerretDB, a
// server that speaks MongoDB's protocol. It is a module of its own, so that
// what the server needs is no requirement of the project.
package ferrettest
