package vxdl

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

const physical = `<description xmlns="http://www.vxdlforum.org/vxdl"><virtualInfrastructure><id>p</id>
<vNode><id>n1</id><location>paris</location><memory><simple>64</simple><unit>GiB</unit></memory><cpu><cores><simple>6</simple></cores></cpu></vNode>
<vNode><id>n2</id></vNode>
<vRouter><id>r</id></vRouter>
<vLink><id>l</id><source>n1</source><destination>r</destination>
<bandwidth><forward><unit>Mbps</unit><simple>10</simple></forward><reverse><unit>Mbps</unit><interval><min>4</min></interval></reverse></bandwidth>
<latency><unit>ms</unit><simple>50</simple></latency></vLink>
</virtualInfrastructure></description>`

func TestSubstrate(t *testing.T) {
	want := vnet.Substrate{
		Hosts:    []vnet.SubstrateNode{{Name: "n1", Site: "paris", CPU: 6 * vnet.Core, Memory: 64 * vnet.GiB}, {Name: "n2"}},
		Switches: []string{"r"},
		Links:    []vnet.SubstrateLink{{Name: "l", Ends: [2]string{"n1", "r"}, Capacity: 4 * vnet.Mbit, Latency: 50 * time.Millisecond}},
	}
	got, notes, err := ParseSubstrate("f", []byte(physical))
	if err != nil || len(notes) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, notes %v, %v", got, notes, err)
	}
}

func TestSubstrateWithoutCapacity(t *testing.T) {
	_, _, err := ParseSubstrate("f", []byte(strings.ReplaceAll(physical, "bandwidth", "unknown")))
	if err == nil || !strings.Contains(err.Error(), "f:1:1: description: as a substrate: links[0].capacity: is missing") {
		t.Errorf("got %v", err)
	}
}
