package rest

import (
	"net/http"
	"time"
)

// pacedWriter cuts off a reader that does not take anything for bodyTime, so
// that it can't hold what is kept for it.
type pacedWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func pace(w http.ResponseWriter) *pacedWriter {
	return &pacedWriter{w, http.NewResponseController(w)}
}

// Write implements io.Writer.
func (p *pacedWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(bodyTime)) // not every connection has deadlines
	return p.w.Write(b)
}

// end lets the connection serve other requests without a deadline.
func (p *pacedWriter) end() {
	_ = p.control.SetWriteDeadline(time.Time{}) // not every connection has deadlines
}
