package api

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"sublet/vnet"
)

// loaded is the description as generators of clients read it.
func loaded(t *testing.T) *openapi3.T {
	t.Helper()
	doc := must[*openapi3.T](t)(openapi3.NewLoader().LoadFromData(description))
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestDescriptionIsOpenAPI3: generators know version 3.0, and name functions
// by operationId.
func TestDescriptionIsOpenAPI3(t *testing.T) {
	doc := loaded(t)
	if !strings.HasPrefix(doc.OpenAPI, "3.0.") {
		t.Errorf("version %s", doc.OpenAPI)
	}
	seen := make(map[string]string)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			at, id := method+" "+path, operation.OperationID
			if id == "" || seen[id] != "" {
				t.Errorf("%s: operationId %q, which %q has", at, id, seen[id])
			}
			seen[id] = at
		}
	}
}

func TestDescriptionIsServed(t *testing.T) {
	r := newRig(t)
	if got := string(getBody(t, r.as(os.Geteuid()), "/v1/openapi.yaml")); got != string(description) {
		t.Errorf("served is another text of %d bytes", len(got))
	}
}

func getBody(t *testing.T, c *Client, path string) []byte {
	t.Helper()
	request := must[*http.Request](t)(http.NewRequestWithContext(within(t), http.MethodGet, c.base+path, nil))
	response := must[*http.Response](t)(c.http.Do(request))
	defer response.Body.Close()
	text := must[[]byte](t)(io.ReadAll(response.Body))
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s", path, response.Status, text)
	}
	return text
}

// TestAnswersAreAsDescribed holds what the server says against the schemas.
func TestAnswersAreAsDescribed(t *testing.T) {
	doc, r := loaded(t), newRig(t)
	r.agents()
	c := r.as(os.Geteuid())
	id := must[Admission](t)(c.Admit(within(t), pair("net", vnet.Mbit), false)).Lease.ID()
	must[vnet.Lease](t)(c.WaitReady(within(t), id))
	must[Admission](t)(c.Admit(within(t), pair("over", vnet.Mbit), false))
	must[vnet.Lease](t)(c.Release(within(t), vnet.LeaseID{Tenant: id.Tenant, Network: "over"}))
	for path, url := range map[string]string{
		"/v1/leases":                    "/v1/leases",
		"/v1/leases/{tenant}/{network}": leasePath(id),
		"/v1/hosts":                     "/v1/hosts",
		"/v1/links":                     "/v1/links",
		"/v1/calendar":                  "/v1/calendar",
		"/v1/substrate":                 "/v1/substrate",
		"/v1/plans/{host}":              "/v1/plans/h1",
	} {
		schema := doc.Paths.Value(path).Get.Responses.Value("200").Value.Content["application/json"].Schema.Value
		var value any
		if err := json.Unmarshal(getBody(t, c, url), &value); err != nil {
			t.Fatal(err)
		}
		if err := schema.VisitJSON(value); err != nil {
			t.Errorf("GET %s is not as described: %v", url, err)
		}
	}
}

// TestClientIsGenerated makes a Go client of the description, as users do.
func TestClientIsGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator")
	}
	const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.5.0"
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", generator)
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod")
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("the generator cannot be had: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "openapi.yaml")
	if err := os.WriteFile(file, description, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), filepath.Join(dir, "oapi-codegen"), "-generate", "types,client", "-package", "client", file).CombinedOutput()
	if err != nil || !strings.Contains(string(text), ") CreateLease(ctx context.Context") {
		t.Errorf("no client comes of it: %v\n%.2000s", err, text)
	}
}
