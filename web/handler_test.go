package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// upstream answers every call with what it was asked.
type upstream struct{}

func (upstream) BaseURL() *url.URL { return &url.URL{Scheme: "http", Host: "sublet"} }

func (upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	var seen []string
	for name := range r.Header {
		seen = append(seen, name)
	}
	text := r.Method + " " + r.URL.String() + " " + strings.Join(seen, ",")
	return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func (upstream) Dial(context.Context) (net.Conn, error) { return nil, errors.New("no sessions here") }

func served(t *testing.T, h Handler) *httptest.Server {
	h.Server, h.Secret = upstream{}, "s3cret"
	s := httptest.NewServer(h.Routes())
	t.Cleanup(s.Close)
	return s
}

func asked(t *testing.T, s *httptest.Server, method, path, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Security-Policy") != policy {
		t.Errorf("%s %s: no policy", method, path)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestWhoMayUseThePage: only files are for who does not know the secret; a page
// that only shows passes on nothing that changes something; sessions of the API
// are passed on by nobody.
func TestWhoMayUseThePage(t *testing.T) {
	known := []string{"Authorization", "Bearer s3cret"}
	for _, c := range []struct {
		readOnly     bool
		method, path string
		header       []string
		status       int
	}{
		{false, "GET", "/", nil, 200},
		{false, "GET", "/js/main.js", nil, 200},
		{false, "GET", "/v1/leases", nil, 401},
		{false, "GET", "/v1/leases", []string{"Authorization", "Bearer other"}, 401},
		{false, "GET", "/v1/leases", []string{"Cookie", "secret=s3cret"}, 401},
		{false, "GET", "/page/about", nil, 401},
		{false, "POST", "/page/request", nil, 401},
		{false, "GET", "/page/capture?count=1&for=1s", nil, 401},
		{false, "GET", "/page/console", nil, 401},
		{false, "GET", "/page/watch", nil, 401},
		{false, "GET", "/v1/leases", known, 200},
		{false, "DELETE", "/v1/leases/a/b", known, 200},
		{true, "GET", "/v1/leases", known, 200},
		{true, "POST", "/v1/offers", known, 200},
		{true, "DELETE", "/v1/leases/a/b", known, 403},
		{true, "POST", "/v1/leases", known, 403},
		{true, "GET", "/page/capture?count=1&for=1s", known, 403},
		{false, "GET", "/v1/leases/a/b/nodes/n/exec", append([]string{"Upgrade", "sublet-session", "Connection", "Upgrade"}, known...), 403},
		{false, "GET", "/page/capture?count=1&for=2m", known, 400},
		{false, "GET", "/page/capture?count=0&for=1s", known, 400},
		{false, "GET", "/metrics", known, 404},
	} {
		s := served(t, Handler{ReadOnly: c.readOnly})
		if status, text := asked(t, s, c.method, c.path, "", c.header...); status != c.status {
			t.Errorf("%s %s (read-only %v, %v): %d %s", c.method, c.path, c.readOnly, c.header, status, text)
		}
	}
}

// TestWhatIsPassedOn: the server sees the call, and neither the secret nor where
// the browser comes from.
func TestWhatIsPassedOn(t *testing.T) {
	s := served(t, Handler{})
	_, text := asked(t, s, "GET", "/v1/events?after=3", "", "Authorization", "Bearer s3cret", "Last-Event-ID", "7", "Cookie", "a=b", "Origin", "http://x")
	if !strings.HasPrefix(text, "GET http://sublet/v1/events?after=3 ") || !strings.Contains(text, "Last-Event-Id") {
		t.Errorf("the server is asked %s", text)
	}
	for _, name := range []string{"Authorization", "Cookie", "Origin"} {
		if strings.Contains(text, name) {
			t.Errorf("the server sees %s: %s", name, text)
		}
	}
}

// TestRequestsAreRead: a text becomes a request of the API, or one clear line.
func TestRequestsAreRead(t *testing.T) {
	s := served(t, Handler{ReadOnly: true})
	known := []string{"Authorization", "Bearer s3cret"}
	if status, text := asked(t, s, "POST", "/page/request", "network: n\nnodes: [{name: a}]\n", known...); status != 200 || !strings.Contains(text, `"network":"n"`) {
		t.Errorf("a request is read as %d %s", status, text)
	}
	if status, text := asked(t, s, "POST", "/page/request", "network: n\nnods: [{name: a}]\n", known...); status != 400 || !strings.Contains(text, "nods") {
		t.Errorf("a mistyped field gets %d %s", status, text)
	}
	if status, text := asked(t, s, "POST", "/page/request", "network: n\nnodes: [{name: a, files: [{path: /x, from: /etc/shadow}]}]\n", known...); status != 400 {
		t.Errorf("a file of this machine is read: %d %s", status, text)
	}
	if status, _ := asked(t, s, "POST", "/page/request", strings.Repeat("#", bodyLimit+1), known...); status != 413 {
		t.Errorf("a text without end gets %d", status)
	}
}

// TestConsolesAreForThePageOnly: a page of another site gets none, even if it
// knew the secret.
func TestConsolesAreForThePageOnly(t *testing.T) {
	s := served(t, Handler{})
	address := "ws" + strings.TrimPrefix(s.URL, "http") + "/page/console?tenant=a&network=b&node=c"
	open := func(origin string, protocols ...string) int {
		dialer := websocket.Dialer{Subprotocols: protocols}
		conn, response, err := dialer.DialContext(t.Context(), address, http.Header{"Origin": {origin}})
		if err != nil {
			return response.StatusCode
		}
		defer conn.Close()
		_, _, err = conn.ReadMessage()
		if closed := new(websocket.CloseError); !errors.As(err, &closed) || !strings.Contains(closed.Text, "no sessions here") {
			t.Errorf("the console ends with %v", err)
		}
		return response.StatusCode
	}
	for _, c := range []struct {
		origin    string
		protocols []string
		status    int
	}{
		{s.URL, []string{subprotocol, bearer + "s3cret"}, 101},
		{s.URL, []string{subprotocol, bearer + "other"}, 401},
		{s.URL, []string{subprotocol, "s3cret"}, 401},
		{s.URL, []string{subprotocol}, 401},
		{"http://elsewhere.example", []string{subprotocol, bearer + "s3cret"}, 403},
	} {
		if status := open(c.origin, c.protocols...); status != c.status {
			t.Errorf("from %s with %v: %d, wanted %d", c.origin, c.protocols, status, c.status)
		}
	}
}

var imported = regexp.MustCompile(`(?:from '|src="|href="|script\(')(\.?/?[a-zA-Z][^'"#]*\.(?:js|css))['"]`)

// TestThePageHasAllItsFiles: what a file names is there, and nothing of it comes
// from elsewhere.
func TestThePageHasAllItsFiles(t *testing.T) {
	files, _ := fs.Sub(static, "static")
	n := 0
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "vendor/") || path.Ext(name) == ".json" {
			return err
		}
		text, err := fs.ReadFile(files, name)
		for _, found := range imported.FindAllStringSubmatch(string(text), -1) {
			n++
			target := found[1]
			if strings.HasPrefix(target, "./") {
				target = path.Join(path.Dir(name), target)
			}
			if _, missing := fs.Stat(files, target); missing != nil {
				t.Errorf("%s names %s, which is not there", name, found[1])
			}
		}
		if strings.Contains(string(text), "innerHTML") || strings.Contains(string(text), "https://") {
			t.Errorf("%s sets HTML, or takes something from elsewhere", name)
		}
		return err
	})
	if err != nil || n < 10 {
		t.Errorf("%d names of files were found: %v", n, err)
	}
}

// TestRequestsTakeTurns: a request is parsed in its turn, which has ended when the
// browser is answered.
func TestRequestsTakeTurns(t *testing.T) {
	w := httptest.NewRecorder()
	turns, ended := 0, false
	h := Handler{Server: upstream{}, Known: true, Turn: func(bytes int) func() {
		turns += bytes
		return func() { ended = w.Body.Len() == 0 }
	}}
	text := "network: net\nnodes: [{name: a}]\n"
	h.Routes().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/page/request", strings.NewReader(text)))
	if w.Code != http.StatusOK || turns != len(text) || !ended {
		t.Errorf("%d %s: parsed %d bytes in turn, ended before the answer: %v", w.Code, w.Body, turns, ended)
	}
}

// TestSchemaOfThePage: the page completes by the schema that is published.
func TestSchemaOfThePage(t *testing.T) {
	published, err := os.ReadFile("../docs/schema/request.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := json.Compact(&small, published); err != nil {
		t.Fatal(err)
	}
	const copied = "static/request.schema.json"
	if *rewrite {
		if err := os.WriteFile(copied, small.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(copied)
	if err != nil || !bytes.Equal(have, small.Bytes()) {
		t.Errorf("%s is not docs/schema/request.schema.json (%v): run go test ./web -rewrite", copied, err)
	}
}

// TestProblemsHavePlaces: each problem of a text says where it is.
func TestProblemsHavePlaces(t *testing.T) {
	s := served(t, Handler{})
	text := "network: n\nnodes:\n  - {name: a, cppu: 1}\nlinks:\n  - {ends: [a, a], min: 10Mbt}\n"
	status, body := asked(t, s, "POST", "/page/request", text, "Authorization", "Bearer s3cret")
	var problem wrong
	if err := json.Unmarshal([]byte(body), &problem); err != nil || status != 400 || len(problem.Problems) != 2 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if p := problem.Problems[0]; p.Line != 3 || p.Column != 15 || !strings.Contains(p.Problem, "cppu") {
		t.Errorf("the first is %+v", p)
	}
	if p := problem.Problems[1]; p.Line != 5 || !strings.Contains(p.Problem, "10Mbt") {
		t.Errorf("the second is %+v", p)
	}
}

// TestFilesAreSentOnce: a browser that has the files is told so, until they change.
func TestFilesAreSentOnce(t *testing.T) {
	s := served(t, Handler{})
	if status, body := asked(t, s, "GET", "/js/main.js", "", "If-None-Match", version()); status != http.StatusNotModified || body != "" {
		t.Errorf("who has it gets %d and %d bytes", status, len(body))
	}
	if status, body := asked(t, s, "GET", "/js/main.js", "", "If-None-Match", `"other"`); status != http.StatusOK || body == "" {
		t.Errorf("who has another one gets %d and %d bytes", status, len(body))
	}
}
