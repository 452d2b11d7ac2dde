package api

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sublet/lease/policy"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

type document struct {
	Paths      map[string]map[string]any
	Components struct {
		Schemas map[string]struct{ Properties map[string]any }
	}
}

func described(t *testing.T) document {
	t.Helper()
	var d document
	if err := yaml.Unmarshal(description, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRoutesAreDescribed(t *testing.T) {
	var want, got []string
	for _, r := range routes {
		want = append(want, r.method+" "+r.path)
	}
	for path, operations := range described(t).Paths {
		for method := range operations {
			if method != "parameters" {
				got = append(got, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("openapi.yaml describes\n%s\nserved are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTypesAreDescribed(t *testing.T) {
	schemas := described(t).Components.Schemas
	for name, value := range map[string]any{
		"Problem": Problem{}, "Change": vnet.Change{}, "Offer": vnet.Offer{}, "Ask": Ask{}, "Admission": Admission{}, "Request": vnet.Request{},
		"Node": vnet.VirtualNode{}, "VirtualLink": vnet.VirtualLink{}, "Bandwidth": vnet.Bandwidth{}, "Stage": vnet.Stage{},
		"CheckAsk": CheckAsk{}, "CheckLine": CheckLine{}, "Measured": vnet.Measurement{},
		"Lease": vnet.Lease{}, "Proposal": Proposal{}, "Aftermath": Aftermath{}, "Quote": vnet.Quote{}, "Disturbance": vnet.Disturbance{}, "Calendar": Calendar{}, "Load": vnet.Load{}, "HostLoad": vnet.HostLoad{}, "HostStep": vnet.HostStep{}, "Account": vnet.Account{}, "Cost": vnet.Cost{}, "Verdict": vnet.Verdict{}, "LinkVerdict": vnet.LinkVerdict{}, "Substrate": vnet.Substrate{},
		"LedgerPage": LedgerPage{}, "Record": vnet.Record{}, "Life": vnet.Life{}, "PolicyView": PolicyView{}, "Usage": policy.Usage{}, "NodeDefaults": vnet.NodeDefaults{}, "Host": Host{}, "Link": Link{}, "Plan": plan.Host{}, "Report": report.Report{}, "Traffic": report.Traffic{}, "OverlayState": report.TunnelState{}, "Path": report.Forwarding{},
	} {
		got := slices.Sorted(maps.Keys(schemas[name].Properties))
		want := fieldsOf(reflect.TypeOf(value))
		if !slices.Equal(got, want) {
			t.Errorf("%s: openapi.yaml has %v, Go has %v", name, got, want)
		}
	}
}

func TestQuotasAreDescribed(t *testing.T) {
	var want []string
	for _, name := range vnet.QuotaNames {
		want = append(want, string(name))
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(described(t).Components.Schemas["Quota"].Properties)); !slices.Equal(got, want) {
		t.Errorf("openapi.yaml has %v, vnet has %v", got, want)
	}
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
