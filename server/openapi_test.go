package server

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"sublet/lease/api"
	"sublet/vnet"
)

func TestDescriptionIsServed(t *testing.T) {
	r := newRig(t)
	if got := string(getBody(t, r.as(os.Geteuid()), "/v1/openapi.yaml")); got != string(api.Description) {
		t.Errorf("served is another text of %d bytes", len(got))
	}
}

// TestVersionIsOne: the description, the answer and the constant are of one version.
func TestVersionIsOne(t *testing.T) {
	r := newRig(t)
	v := must[api.Version](t)(r.as(os.Geteuid()).Version(within(t)))
	if described := loaded(t).Info.Version; v.APIVersion != api.APIVersion || described != api.APIVersion {
		t.Errorf("the server says %q, the description %q, the program %q", v.APIVersion, described, api.APIVersion)
	}
}

func getBody(t *testing.T, c *api.Client, path string) []byte {
	t.Helper()
	request := must[*http.Request](t)(http.NewRequestWithContext(within(t), http.MethodGet, "http://sublet"+path, nil))
	response := must[*http.Response](t)(over(c).Do(request))
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
	id := must[api.Admission](t)(c.Admit(within(t), pair("net", vnet.Mbit), false)).Lease.ID()
	must[vnet.Lease](t)(c.WaitReady(within(t), id))
	must[api.Admission](t)(c.Admit(within(t), pair("over", vnet.Mbit), false))
	must[vnet.Lease](t)(c.Release(within(t), vnet.LeaseID{Tenant: id.Tenant, Network: "over"}))
	for path, url := range map[string]string{
		"/v1/leases":                    "/v1/leases",
		"/v1/leases/{tenant}/{network}": api.LeasePath(id),
		"/v1/hosts":                     "/v1/hosts",
		"/v1/links":                     "/v1/links",
		"/v1/calendar":                  "/v1/calendar",
		"/v1/substrate":                 "/v1/substrate",
		"/v1/plans/{host}":              "/v1/plans/h1",
		"/v1/version":                   "/v1/version",
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

func TestRoutesAreDescribed(t *testing.T) {
	var want, got []string
	for _, r := range routes {
		want = append(want, r.method+" "+r.path)
	}
	for path, item := range loaded(t).Paths.Map() {
		for method := range item.Operations() {
			got = append(got, method+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("openapi.yaml describes\n%s\nserved are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// loaded is the description as generators of clients read it.
func loaded(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.Description)
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
