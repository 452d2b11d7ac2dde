package problem

import (
	"bufio"
	"net"
	"net/http"
)

// Handler answers as next does, and with a problem where next answers an error in
// another form, such as those of net/http.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mended := &writer{ResponseWriter: w}
		next.ServeHTTP(mended, r)
		mended.finish()
	})
}

// writer keeps the words of an error that is no problem until the handler is done.
type writer struct {
	http.ResponseWriter
	begun  bool
	status int    // of an error that is being kept; 0: none is
	words  []byte // of it
}

func (w *writer) WriteHeader(status int) {
	if w.begun && status >= 200 {
		return
	}
	if status < 400 || Is(w.Header()) {
		w.begun = w.begun || status >= 200
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.begun, w.status = true, status
}

func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.begun = true
		return w.ResponseWriter.Write(p)
	}
	w.words = append(w.words, p[:min(len(p), mostWords-len(w.words))]...)
	return len(p), nil
}

// finish answers what was kept.
func (w *writer) finish() {
	if w.status == 0 {
		return
	}
	words := string(w.words)
	if words == "" {
		words = http.StatusText(w.status)
	}
	Write(w.ResponseWriter, w.status, words)
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack and Flush are for those who ask for the interfaces.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

func (w *writer) Flush() {
	if w.status == 0 {
		w.begun = true
		_ = http.NewResponseController(w.ResponseWriter).Flush() // one that cannot is written to in its own time
	}
}
