package p2p

import (
	"log/slog"

	"github.com/libp2p/go-libp2p/gologshim"
)

// LibraryLog is where libp2p's own packages log to, in the whole process. Without it
// they write their errors to standard error, among them some about connections that
// end as they should. A program calls it once, before it opens a host.
func LibraryLog(to slog.Handler) { gologshim.SetDefaultHandler(to) }
