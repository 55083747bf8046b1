// Package dashboard has the web pages of a cluster: what it does now and did in the last
// hours, what is wrong, and its futures, functions, queues, lanes, actors, schedules, batches,
// job logs, workers and peers.
//
// The pages are a client of the HTTP API, package futures/httpapi, and of that of batches
// where it is served too: they show what it answers, and can do what their session's role
// may do. They are plain files, without a build step, and load nothing from elsewhere. Their
// session is sent in a header, never in a cookie, so that no other page can use it.
package dashboard

import (
	"embed"
	"io/fs"

	"github.com/futura-run/futura/futures/httpapi/stack"
)

// Path is where the pages are.
const Path = "/ui/"

// LoginPath is the path that logs in with the secret of a link, which follows it. A browser
// sends no part of it to a server.
const LoginPath = Path + "#login="

//go:embed site
var files embed.FS

// Register adds the pages to a stack, and leads browsers to them from its first page.
func Register(s *stack.Stack) {
	site, err := fs.Sub(files, "site")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	s.Site(Path, site)
}
