package api

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"sublet/lease/policy"
	"sublet/plan"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// loaded is the description as generators of clients read it.
func loaded(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(Description)
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
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
		for _, p := range item.Parameters {
			if p.Value.Name == "server" {
				t.Errorf("%s: functions of generated Go clients have a parameter server already", path)
			}
		}
		for method, operation := range item.Operations() {
			at, id := method+" "+path, operation.OperationID
			if id == "" || seen[id] != "" {
				t.Errorf("%s: operationId %q, which %q has", at, id, seen[id])
			}
			seen[id] = at
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
	if err := os.WriteFile(file, Description, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), filepath.Join(dir, "oapi-codegen"), "-generate", "types,client", "-package", "client", file).CombinedOutput()
	if err != nil || !strings.Contains(string(text), ") CreateLease(ctx context.Context") {
		t.Errorf("no client comes of it: %v\n%.2000s", err, text)
	}
}

func TestTypesAreDescribed(t *testing.T) {
	schemas := loaded(t).Components.Schemas
	for name, value := range map[string]any{
		"ConsolidateAsk": ConsolidateAsk{}, "Consolidated": Consolidated{}, "FullHost": FullHost{},
		"MaintenanceAsk": MaintenanceAsk{}, "PlannedMaintenance": vnet.Maintenance{}, "Maintenance": Maintenance{}, "Staying": Staying{},
		"TokenAsk": TokenAsk{}, "Token": trust.Token{}, "NewToken": NewToken{},
		"Problem": Problem{}, "Change": vnet.Change{}, "Offer": vnet.Offer{}, "Ask": Ask{}, "Update": Update{}, "Updated": Updated{}, "Admission": Admission{}, "Request": vnet.Request{},
		"Node": vnet.VirtualNode{}, "Function": vnet.Function{}, "Processing": vnet.Processing{}, "VirtualLink": vnet.VirtualLink{}, "Bandwidth": vnet.Bandwidth{}, "Stage": vnet.Stage{}, "Pause": vnet.Pause{}, "PauseAsk": PauseAsk{}, "Proof": vnet.Proof{}, "LatencyProof": vnet.LatencyProof{},
		"CheckAsk": CheckAsk{}, "CheckLine": CheckLine{}, "Measured": vnet.Measurement{},
		"Lease": vnet.Lease{}, "Concern": vnet.Concern{}, "Waiting": vnet.Waiting{}, "Notify": Notify{}, "NotifyAsk": NotifyAsk{}, "Proposal": Proposal{}, "Aftermath": Aftermath{}, "Quote": vnet.Quote{}, "Disturbance": vnet.Disturbance{}, "Calendar": Calendar{}, "Load": vnet.Load{}, "HostLoad": vnet.HostLoad{}, "HostStep": vnet.HostStep{}, "Account": vnet.Account{}, "Cost": vnet.Cost{}, "PacketCost": vnet.PacketCost{}, "Verdict": vnet.Verdict{}, "LinkVerdict": vnet.LinkVerdict{}, "ChainVerdict": vnet.ChainVerdict{}, "PassedHop": vnet.ChainHop{}, "Substrate": vnet.Substrate{},
		"LedgerPage": LedgerPage{}, "Record": vnet.Record{}, "Life": vnet.Life{}, "PolicyView": PolicyView{}, "Usage": policy.Usage{}, "NodeDefaults": vnet.NodeDefaults{}, "Host": Host{}, "Link": Link{}, "Plan": plan.Host{}, "Report": report.Report{}, "Traffic": report.Traffic{}, "ChainHop": report.ChainHop{}, "OverlayState": report.TunnelState{}, "TableState": report.TableState{}, "EntryState": report.EntryState{}, "TunnelTable": plan.TunnelTable{}, "TunnelEntry": plan.TunnelEntry{}, "TableChange": plan.TableChange{}, "Path": report.Forwarding{}, "Sample": report.Sample{}, "FlowTrace": report.FlowTrace{}, "FlowStep": report.FlowStep{}, "Counter": report.Counter{}, "Said": Said{},
	} {
		t.Run(name, func(t *testing.T) {
			got := propertiesOf(schemas[name])
			want := fieldsOf(reflect.TypeOf(value))
			if name == "Plan" { // sections may be described by what all have, too
				got = slices.DeleteFunc(got, func(n string) bool { return slices.Contains(plan.SectionNames(), n) })
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: openapi.yaml has %v, Go has %v", name, got, want)
			}
		})
	}
}

func TestQuotasAreDescribed(t *testing.T) {
	var want []string
	for _, name := range vnet.QuotaNames {
		want = append(want, string(name))
	}
	slices.Sort(want)
	if got := propertiesOf(loaded(t).Components.Schemas["Quota"]); !slices.Equal(got, want) {
		t.Errorf("openapi.yaml has %v, vnet has %v", got, want)
	}
}

// propertiesOf lists the names of a schema.
func propertiesOf(schema *openapi3.SchemaRef) []string {
	if schema == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Value.Properties))
}

// fieldsOf lists the JSON names of a struct, those of embedded ones too.
func fieldsOf(kind reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(kind) {
		if tag, ok := f.Tag.Lookup("json"); ok && !f.Anonymous {
			if name, _, _ := strings.Cut(tag, ","); name != "-" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
