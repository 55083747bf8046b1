package stack

import (
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// sitePolicy lets pages run their own scripts alone, which can't turn a text into markup or
// into a script, and talk to their own server alone.
const sitePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// siteFile is a file of a site.
type siteFile struct{ *document }

// ServeHTTP implements http.Handler.
func (f siteFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	f.document.ServeHTTP(w, r)
}

// Site serves files below a path, which ends with a slash and has index.html, and leads
// browsers there from /. They need no token, and so contain no data: their scripts get that
// from the API with a session of their own. They are compressed once, and load nothing from
// elsewhere. It panics if the files can't be read.
func (s *Stack) Site(at string, files fs.FS) {
	s.site = at
	s.raw("GET "+strings.TrimSuffix(at, "/"), Public, http.RedirectHandler(at, http.StatusFound))
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		media := mime.TypeByExtension(path.Ext(name))
		switch path.Ext(name) { // the types of a machine may be others
		case ".js":
			media = "text/javascript; charset=utf-8"
		case ".css":
			media = "text/css; charset=utf-8"
		case ".svg":
			media = "image/svg+xml"
		}
		d := serveDocument(media, content)
		d.policy = sitePolicy
		if name == "index.html" {
			name = "{$}"
		}
		s.raw("GET "+at+name, Public, siteFile{d})
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("stack: the files of %s: %v", at, err))
	}
}
