package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

// Handler serves the page of one server to whoever knows the secret.
type Handler struct {
	Server   Server
	Secret   string                        // a token of HTTP (RFC 9110, section 5.6.2)
	Known    bool                          // who calls is known without it
	ReadOnly bool                          // nothing can be asked for or done, only seen
	Turn     func(bytes int) (done func()) // waited for before so much is parsed; nil: nothing is
}

// Server is how the page's user reaches the server.
type Server interface {
	http.RoundTripper
	// BaseURL is where the routes of the API begin.
	BaseURL() *url.URL
	Dialer
}

// bodyLimit bounds what a browser sends, in bytes; it is that of files of requests.
const bodyLimit = 4 << 20

// Routes are the handler's.
func (h Handler) Routes() http.Handler {
	files, _ := fs.Sub(static, "static") // the folder is embedded above
	mux := http.NewServeMux()
	mux.Handle("GET /", tagged(http.FileServerFS(files)))
	mux.Handle("GET /page/about", h.guard(http.HandlerFunc(h.about)))
	mux.Handle("POST /page/request", h.guard(http.HandlerFunc(h.readRequest)))
	mux.Handle("GET /page/capture", h.guard(http.HandlerFunc(h.capture)))
	mux.HandleFunc("GET /page/console", h.console) // these ask for the secret by themselves: see upgrade
	mux.HandleFunc("GET /page/watch", h.watch)
	api := h.guard(h.allowed(h.proxy()))
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		mux.Handle(method+" /v1/", api)
	}
	return harden(mux)
}

// version is of all files together. A browser asks whether it is still theirs, and
// is sent nothing if it is.
var version = sync.OnceValue(func() string {
	sum := sha256.New()
	_ = fs.WalkDir(static, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := static.ReadFile(name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		return err
	}) // the folder is embedded above
	return `"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`
})

func tagged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", version())
		next.ServeHTTP(w, r)
	})
}

// policy keeps the page to its own files. Styles are the exception, since the
// terminal and the graph make their own.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-cache")
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
		next.ServeHTTP(w, r)
	})
}

const noSecret = "this address lacks the page's secret: open the address that `sublet page` printed"

const onlyShows = "this page, or your token, only shows"

func (h Handler) knows(secret string) bool {
	return h.Known || subtle.ConstantTimeCompare([]byte(secret), []byte(h.Secret)) == 1
}

// guard refuses who does not know the secret.
func (h Handler) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !h.knows(secret) {
			problem(w, http.StatusUnauthorized, noSecret)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allowed refuses what a page that only shows must not do, and sessions, which
// have routes of their own here.
func (h Handler) allowed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodPost && r.URL.Path == "/v1/offers"
		switch {
		case r.Header.Get("Upgrade") != "":
			problem(w, http.StatusForbidden, "sessions of the API are not passed on here")
		case h.ReadOnly && !reads:
			problem(w, http.StatusForbidden, onlyShows)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// proxy passes calls on as they are, without what browsers add about themselves.
func (h Handler) proxy() http.Handler {
	return &httputil.ReverseProxy{
		Transport: h.Server,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(h.Server.BaseURL())
			for _, name := range []string{"Authorization", "Cookie", "Origin", "Referer", "User-Agent"} {
				r.Out.Header.Del(name)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			problem(w, http.StatusBadGateway, "the server does not answer: "+err.Error())
		},
	}
}
