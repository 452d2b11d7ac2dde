package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"sublet/internal/problem"
	"sublet/lease/api"
	"sublet/vnet"
	"sublet/web"
)

// TestEveryErrorIsAProblem asks each route for what does not exist, with a body
// that is none, and by methods that it has not, where a page answers what is no
// route and where none does.
func TestEveryErrorIsAProblem(t *testing.T) {
	schema := loaded(t).Components.Schemas["Problem"].Value
	for name, page := range map[string]Page{"no page": nil, "page": func(c *api.Client, _ bool, _ func(int) func()) http.Handler {
		return web.Handler{Server: c, Known: true}.Routes()
	}} {
		t.Run(name, func(t *testing.T) {
			c := pagedServer(t, page)
			for _, r := range routes {
				path := r.path
				for _, part := range []string{"tenant", "network", "node", "link", "switch", "host", "name", "token", "maintenance"} {
					path = strings.ReplaceAll(path, "{"+part+"}", "none")
				}
				for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
					if !slices.Contains([]string{"/v1/watch"}, path) { // without an end
						holdProblem(t, c, schema, method, path, "{")
					}
				}
			}
			for _, path := range []string{"/nothing", "/page/nothing", "/v1", "/v1/", "/v1/nothing", "/index.html/x"} {
				if status := holdProblem(t, c, schema, "GET", path, ""); status < 400 {
					t.Errorf("GET %s: %d", path, status)
				}
			}
			for _, method := range []string{"POST", "PUT", "DELETE", "BREW"} {
				if status := holdProblem(t, c, schema, method, "/", "x"); status < 400 {
					t.Errorf("%s /: %d", method, status)
				}
			}
		})
	}
}

func pagedServer(t *testing.T, page Page) *http.Client {
	t.Helper()
	r := newRig(t)
	server := must[*Server](t)(New(t.Context(), Config{Store: r.store, Page: page}))
	ctx, stop := context.WithCancel(t.Context())
	l := must[net.Listener](t)(Listen(t.TempDir(), nil))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-done })
	c := api.NewClient(l.Addr().String())
	t.Cleanup(c.Close)
	return over(c)
}

// holdProblem asks, and says what is wrong with the form of an error.
func holdProblem(t *testing.T, c *http.Client, schema *openapi3.Schema, method, path, body string) (status int) {
	t.Helper()
	request := must[*http.Request](t)(http.NewRequestWithContext(within(t), method, "http://sublet"+path, strings.NewReader(body)))
	request.Header.Set("Content-Type", "application/json")
	response := must[*http.Response](t)(c.Do(request))
	defer response.Body.Close()
	if response.StatusCode < 400 {
		return response.StatusCode
	}
	text := must[[]byte](t)(io.ReadAll(response.Body))
	if !problem.Is(response.Header) {
		t.Errorf("%s %s answers %d as %q: %s", method, path, response.StatusCode, response.Header.Get("Content-Type"), text)
	}
	if method == http.MethodHead {
		return response.StatusCode
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Errorf("%s %s answers %s: %v", method, path, text, err)
	} else if err := schema.VisitJSON(value); err != nil {
		t.Errorf("%s %s answers another problem than described, %s: %v", method, path, text, err)
	}
	return response.StatusCode
}

// TestErrorsOfAgentsAreProblems: what an agent says in other words is passed on as a
// problem, its status kept.
func TestErrorsOfAgentsAreProblems(t *testing.T) {
	r := newRig(t)
	r.agents()
	l := must[net.Listener](t)(net.Listen("unix", r.agentSocket("h1")))
	agent := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Upgrade", "sublet-session")
		http.Error(w, "ask for an upgrade", http.StatusUpgradeRequired)
	})}
	go agent.Serve(l)
	t.Cleanup(func() { agent.Close() })
	c, schema := r.as(os.Geteuid()), loaded(t).Components.Schemas["Problem"].Value
	id := must[api.Admission](t)(c.Admit(within(t), pair("net", vnet.Mbit), false)).Lease.ID()
	lease := must[vnet.Lease](t)(c.WaitReady(within(t), id))
	for node, host := range lease.Mapping.Nodes {
		if host != "h1" {
			continue
		}
		for _, what := range []string{"exec", "log", "processes"} {
			if status := holdProblem(t, over(c), schema, "GET", api.LeasePath(id)+"/nodes/"+node+"/"+what, ""); status != http.StatusUpgradeRequired {
				t.Errorf("%s: %d", what, status)
			}
		}
		return
	}
	t.Error("no node is on h1")
}
