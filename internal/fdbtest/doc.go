// Package fdbtest starts a FoundationDB server for the tests of one package. It
// needs fdbserver and fdbcli on the PATH, and is empty unless the tests are
// built with -tags fdb.
//
//	func TestMain(m *testing.M) {
//		fdbtest.Main(m, func(s *fdbtest.Server) { server = s })
//	}
//
//	func TestSomething(t *testing.T) {
//		file := server.ClusterFile(t)
//		...
//	}
//
// Where there is no fdbserver, such tests are skipped and say so, or fail if
// FUTURA_REQUIRE_FDB=1 is set.
package fdbtest
