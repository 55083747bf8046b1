// Package ferrettest runs batch/mongostore's tests on an embedded FerretDB, a
// server that speaks MongoDB's protocol. It is a module of its own, so that the
// project does not depend on what the server needs.
package ferrettest
