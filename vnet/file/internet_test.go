package file

import (
	"reflect"
	"strings"
	"testing"

	"sublet/vnet"
)

// The short word stands for a router and its links, to what is said or else to
// what the network's ways lead through.
func TestInternetIsARouter(t *testing.T) {
	for text, ends := range map[string][]string{
		"nodes: [{name: web}, {name: db}]\ninternet: {rate: 50Mbit, publish: ['8080:web:80']}":                                      {"web"},
		"nodes: [{name: web}]\ninternet: {rate: 50Mbit}":                                                                            {"web"},
		"nodes: [{name: web}, {name: db}]\nrouters: [{name: r}]\ninternet: {rate: 50Mbit, publish: ['8080:web:80']}":                {"r"},
		"nodes: [{name: web}]\nrouters: [{name: r}]\nswitches: [{name: s}]\ninternet: {rate: 50Mbit}":                               {"s"},
		"nodes: [{name: web}, {name: db}]\nswitches: [{name: s}]\ninternet: {nat: campus, min: 10Mbit, max: 50Mbit, to: [db, web]}": {"db", "web"},
	} {
		r, err := ParseRequest("net.yaml", []byte("network: net\n"+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		out := r.Routers[len(r.Routers)-1]
		if nat := map[bool]string{true: "campus", false: vnet.AnyNAT}[strings.Contains(text, "campus")]; out.Name != "internet" || out.NAT != nat {
			t.Errorf("%s: router %+v", text, out)
		}
		var linked []string
		for _, l := range r.Links {
			if linked = append(linked, l.Ends[0]); l.Ends[1] != "internet" || l.Bandwidth[vnet.Forward].Max != 50*vnet.Mbit || l.Bandwidth[vnet.Reverse] != l.Bandwidth[vnet.Forward] {
				t.Errorf("%s: link %+v", text, l)
			}
		}
		if !reflect.DeepEqual(linked, ends) {
			t.Errorf("%s: linked to %v", text, linked)
		}
	}
	for text, where := range map[string]string{
		"nodes: [{name: a}, {name: b}]\ninternet: {rate: 50Mbit}":                        "internet.to:",
		"nodes: [{name: a}]\ninternet: {}":                                               "internet.rate:",
		"nodes: [{name: a}]\ninternet: {rate: 0bit}":                                     "internet.rate:",
		"nodes: [{name: a}]\ninternet: {rate: 5Mbit, to: [c]}":                           "links[0].ends[0]:",
		"nodes: [{name: internet}]\ninternet: {rate: 5Mbit}":                             "routers[0].name:",
		"nodes: [{name: a}]\ninternet: {rate: 5Mbit, to: [a], publish: ['80:other:80']}": "routers[0].publish[0]:",
	} {
		if _, err := ParseRequest("net.yaml", []byte("network: net\n"+text)); err == nil || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
