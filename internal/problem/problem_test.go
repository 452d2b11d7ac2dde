package problem

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHandlerMendsErrorsAndNothingElse(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /good", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "good") })
	mux.HandleFunc("GET /words", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\n", http.StatusTeapot) })
	mux.HandleFunc("GET /long", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("x", 3*mostWords), http.StatusForbidden)
	})
	mux.HandleFunc("GET /silent", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("GET /problem", func(w http.ResponseWriter, _ *http.Request) { Write(w, http.StatusConflict, "taken") })
	server := httptest.NewServer(Handler(mux))
	defer server.Close()
	for _, c := range []struct {
		method, path string
		status       int
		kind, detail string
	}{
		{"GET", "/words", http.StatusTeapot, "urn:sublet:bad-input", "no"},
		{"GET", "/long", http.StatusForbidden, "urn:sublet:forbidden", strings.Repeat("x", mostWords)},
		{"GET", "/silent", http.StatusBadGateway, "urn:sublet:agent-unreachable", "Bad Gateway"},
		{"GET", "/problem", http.StatusConflict, "urn:sublet:conflict", "taken"},
		{"GET", "/nothing", http.StatusNotFound, "urn:sublet:not-found", "there is nothing here: /v1/openapi.yaml lists what there is"},
		{"POST", "/good", http.StatusMethodNotAllowed, "urn:sublet:not-found", "Method Not Allowed"},
	} {
		status, header, body := ask(t, server.URL, c.method, c.path)
		var p Problem
		if err := json.Unmarshal(body, &p); err != nil || !Is(header) {
			t.Errorf("%s is no problem: %v %s", c.path, header, body)
		}
		if status != c.status || p != (Problem{Type: c.kind, Title: http.StatusText(c.status), Status: c.status, Detail: c.detail}) {
			t.Errorf("%s: %d %+v", c.path, status, p)
		}
	}
	if status, _, body := ask(t, server.URL, "GET", "/good"); status != http.StatusOK || string(body) != "good" {
		t.Errorf("an answer became %d %s", status, body)
	}
}

func ask(t *testing.T, base, method, path string) (int, http.Header, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, body
}

func TestMendKeepsAnswers(t *testing.T) {
	for _, c := range []struct {
		status           int
		kind, body, want string
	}{
		{200, "text/plain", "good", "good"},
		{101, "", "", ""},
		{409, ContentType, `{"detail":"x"}`, `{"detail":"x"}`},
		{426, "text/plain", "ask\n", `{"type":"urn:sublet:upgrade-required","title":"Upgrade Required","status":426,"detail":"ask"}`},
	} {
		r := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(strings.NewReader(c.body))}
		if err := Mend(r); err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(r.Body); string(body) != c.want {
			t.Errorf("%d became %s", c.status, body)
		}
	}
}
