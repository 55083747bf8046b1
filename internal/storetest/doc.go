// Package storetest gives a test an empty store: one in memory, or, with -tags
// fdb, a part of its own of a FoundationDB server that the tests of a package
// share. So one test suite runs on both.
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		db := storetest.New(t)
//		...
//	}
package storetest
