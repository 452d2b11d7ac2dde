// Package steady bounds how long a body of HTTP may stand still, whatever its length:
// a deadline that moves on with each piece.
package steady

import (
	"io"
	"net/http"
	"time"
)

// Patience is how long the other side may take for a piece of at most 32 KiB.
const Patience = time.Minute

// Body reads the body of a request.
func Body(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	return body{r.Body, http.NewResponseController(w)}
}

type body struct {
	io.ReadCloser
	control *http.ResponseController
}

const piece = 32 << 10

func (b body) Read(p []byte) (int, error) {
	if err := b.control.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), piece)])
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // of a connection that goes on
	}
	return n, err
}

// Writer writes the body of an answer.
type Writer struct {
	http.ResponseWriter
	Begun bool // something was written
}

// Write writes in pieces.
func (w *Writer) Write(p []byte) (n int, err error) {
	control := http.NewResponseController(w.ResponseWriter)
	for len(p) > 0 {
		w.Begun = true
		if err := control.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
			return n, err
		}
		m, err := w.ResponseWriter.Write(p[:min(len(p), piece)])
		if n, p = n+m, p[m:]; err != nil {
			return n, err
		}
	}
	return n, nil
}

// End takes the deadline off the connection again.
func (w *Writer) End() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
