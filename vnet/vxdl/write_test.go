package vxdl

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

func TestWriterNotesLosses(t *testing.T) {
	r := vnet.Request{
		Network: "net",
		Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{
				{Name: "a", Host: "h1", Address: netip.MustParseAddr("10.0.0.1"), Labels: map[string]string{"sublet:host": "x"}}, {Name: "b"},
			},
			Routers: []vnet.VirtualNode{{Name: "r", CPU: vnet.Core, Protocol: vnet.ProtocolStatic}},
			Links:   []vnet.VirtualLink{{Name: "l", Ends: [2]string{"a", "b"}, Paths: 4, Impair: [2]vnet.Impairment{{Loss: 1}, {}}}},
		},
		Stages: []vnet.Stage{{
			Name: "s", After: time.Hour, Remove: []string{"l"},
			Add:   vnet.Topology{Nodes: []vnet.VirtualNode{{Name: "c"}}, Links: []vnet.VirtualLink{{Name: "m", Ends: [2]string{"a", "c"}}}},
			Links: map[string][2]vnet.Bandwidth{"m": both(vnet.Static(vnet.Mbit))},
		}},
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	text, notes := Format(r)
	var lines []string
	for _, n := range notes {
		lines = append(lines, n.String())
	}
	wantNotes(t, strings.Join(lines, "\n"),
		"network net: no totalTime is written: the lease is open-ended",
		`node a: label "sublet:host" is not written: the tag of this key has a meaning of its own`,
		"node a: host h1 is written as a tag, which only Sublet reads",
		"node a: address 10.0.0.1 is written as a tag, which only Sublet reads",
		"router r: 1 cores are not written: a vRouter has none",
		"link l: its 4 paths are not written: VXDL 2.0 has one path for a link",
		"link l: its impairment is not written: VXDL 2.0 has none",
		"stage s: c is not added: VXDL 2.0 has one topology for all time",
		"stage s: link m is not added: VXDL 2.0 has one topology for all time",
		"stage s: l is not removed: VXDL 2.0 has one topology for all time",
		"stage s: the rate of link m is not written: the link is not there at the start")
	if _, _, err := Parse("f", text, true); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}

// The written form is stable: this text is what others will read.
func TestWritten(t *testing.T) {
	r := vnet.Request{
		Network: "net", Tenant: "alice", For: 90 * time.Minute,
		Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a", CPU: 500, Memory: 256 * vnet.MiB, Site: "lyon"}, {Name: "b"}},
			Links: []vnet.VirtualLink{{
				Name: "l", Ends: [2]string{"a", "b"}, Latency: 10 * time.Millisecond,
				Bandwidth: [2]vnet.Bandwidth{{Min: 100 * vnet.Mbit, Max: 1500 * vnet.Mbit}, {}},
			}},
		},
		Stages: []vnet.Stage{{Name: "s", After: time.Hour, Links: map[string][2]vnet.Bandwidth{"l": both(vnet.Static(vnet.Gbit))}}},
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<description xmlns="http://www.vxdlforum.org/vxdl">
  <virtualInfrastructure>
    <id>net</id>
    <totalTime>PT1H30M</totalTime>
    <owner>alice</owner>
    <vNode>
      <id>a</id>
      <location>lyon</location>
      <memory>
        <unit>MiB</unit>
        <simple>256</simple>
      </memory>
      <cpu>
        <cores>
          <simple>0.5</simple>
        </cores>
      </cpu>
    </vNode>
    <vNode>
      <id>b</id>
    </vNode>
    <vLink>
      <id>l</id>
      <source>a</source>
      <destination>b</destination>
      <bandwidth>
        <forward>
          <unit>Mbps</unit>
          <interval>
            <min>100</min>
            <max>1500</max>
          </interval>
          <event>s</event>
          <simple>1000</simple>
        </forward>
        <reverse>
          <unit>Gbps</unit>
          <interval/>
          <event>s</event>
          <simple>1</simple>
        </reverse>
      </bandwidth>
      <latency>
        <unit>ms</unit>
        <interval>
          <max>10</max>
        </interval>
      </latency>
    </vLink>
    <timeline>
      <event>
        <id>s</id>
        <delay>3600</delay>
      </event>
    </timeline>
  </virtualInfrastructure>
</description>
`
	if got, notes := Format(r); string(got) != want || len(notes) > 0 {
		t.Errorf("got %v\n%s", notes, got)
	}
}

// requests draws what VXDL carries, with names it may not see as text.
var requests = rapid.Custom(func(t *rapid.T) vnet.Request {
	r := vnet.Request{Network: vnet.VNetID(names.Draw(t, "network"))}
	if rapid.Bool().Draw(t, "owned") {
		r.Tenant = vnet.TenantID(names.Draw(t, "tenant"))
	}
	if rapid.Bool().Draw(t, "timed") {
		r.Start = time.Unix(0, rapid.Int64Range(1e18, 4e18).Draw(t, "start")).UTC()
		r.For = time.Duration(rapid.Int64Range(int64(time.Hour), int64(vnet.MaxDuration)).Draw(t, "for"))
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		n := node(t, fmt.Sprintf("n%d", i))
		if rapid.Bool().Draw(t, "router") {
			n.CPU, n.Protocol = 0, rapid.SampledFrom([]vnet.Protocol{vnet.ProtocolStatic, vnet.ProtocolOSPF, vnet.ProtocolNone}).Draw(t, "protocol")
			r.Routers = append(r.Routers, n)
		} else {
			r.Nodes = append(r.Nodes, n)
		}
	}
	all := r.All()
	var after time.Duration
	for i := range rapid.IntRange(0, 3).Draw(t, "stages") {
		r.Stages = append(r.Stages, vnet.Stage{Name: fmt.Sprintf("s%d", i), After: after})
		after += time.Duration(rapid.Int64Range(1, int64(time.Hour/4)).Draw(t, "after"))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "links") {
		ends := rapid.Permutation(all).Draw(t, "ends")
		l := vnet.VirtualLink{Name: fmt.Sprintf("l%d", i), Ends: [2]string{ends[0].Name, ends[1].Name}, Labels: labels(t), Bandwidth: demand(t)}
		l.Latency = time.Duration(rapid.Int64Range(0, int64(vnet.MaxLatency)).Draw(t, "latency"))
		for j := range r.Stages {
			if rapid.Bool().Draw(t, "change") {
				if r.Stages[j].Links == nil {
					r.Stages[j].Links = make(map[string][2]vnet.Bandwidth)
				}
				r.Stages[j].Links[l.Name] = demand(t)
			}
		}
		r.Links = append(r.Links, l)
	}
	return r
})

var names = rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9_-]{0,38}[A-Za-z0-9])?`)

func node(t *rapid.T, name string) vnet.VirtualNode {
	n := vnet.VirtualNode{Name: name, Labels: labels(t), Exclusive: rapid.Bool().Draw(t, "exclusive")}
	if rapid.Bool().Draw(t, "sized") {
		n.CPU = vnet.CPU(rapid.Int64Range(vnet.MinCPU, int64(vnet.MaxCPU)).Draw(t, "cpu"))
		n.Memory = vnet.Bytes(rapid.Int64Range(int64(vnet.MinMemory), int64(vnet.MaxMemory)).Draw(t, "memory"))
	}
	if rapid.Bool().Draw(t, "placed") {
		n.Site, n.Host = names.Draw(t, "site"), vnet.HostID(names.Draw(t, "host"))
		n.Address = netip.AddrFrom4([4]byte{10, 0, 0, name[1]})
	}
	return n
}

// labels also draws those that are elements of their own, complete or not.
func labels(t *rapid.T) map[string]string {
	if !rapid.Bool().Draw(t, "labelled") {
		return nil
	}
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 :#-'\"{}[],&*!|<>%@`é日]]>")), 0, 12, -1)
	key := rapid.OneOf(text.Filter(func(s string) bool { return s != "" }),
		rapid.SampledFrom([]string{labelModel, labelImage, labelRegion, labelArchitecture, deviceLabel(0), deviceLabel(1), deviceLabel(2), "vxdl:other"}))
	made := rapid.MapOfN(key, text, 1, 5).Draw(t, "labels")
	if rapid.Bool().Draw(t, "access point") {
		made[labelKind] = kindAccessPoint
	}
	return made
}

func demand(t *rapid.T) [2]vnet.Bandwidth {
	var d [2]vnet.Bandwidth
	for i := range d {
		low := vnet.Rate(rapid.Int64Range(int64(vnet.MinRate), int64(vnet.MaxRate)).Draw(t, "low"))
		high := vnet.Rate(rapid.Int64Range(int64(low), int64(vnet.MaxRate)).Draw(t, "high"))
		d[i] = rapid.SampledFrom([]vnet.Bandwidth{
			{}, vnet.Static(low), {Max: high}, {Min: low, Max: vnet.Unbounded}, {Max: vnet.Unbounded}, {Min: low, Max: high},
		}).Draw(t, "form")
	}
	return d
}

func TestRequestComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := requests.Draw(t, "request")
		if err := r.Check(); err != nil {
			t.Fatalf("the generator makes a bad request: %v", err)
		}
		text, notes := Format(r)
		for _, n := range notes {
			if strings.Contains(n.Text, "not written") {
				t.Fatalf("note %s", n)
			}
		}
		got, _, err := Parse("f", text, true)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("wrote %+v\n%s\nread %+v", r, text, got)
		}
	})
}

// Examples are read strictly and come back.
func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../../examples/vxdl/*.xml")
	if err != nil || len(paths) < 2 {
		t.Fatalf("found %v, %v", paths, err)
	}
	for _, path := range paths {
		r, _ := read(t, path, true)
		text, _ := Format(r)
		again, _, err := Parse("written", text, true)
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("%s: %v: read %+v, after writing %+v", path, err, r, again)
		}
	}
}

// Whatever the text, the reader returns a request that comes back, or one line
// that begins with a place.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.xml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text []byte, strict bool) {
		r, _, err := Parse("f", text, strict)
		if err != nil {
			var input *vnet.InputError
			if !errors.As(err, &input) || strings.ContainsAny(err.Error(), "\n\r\x1b") || input.Line < 1 || input.Column < 1 {
				t.Fatalf("error %q", err)
			}
			return
		}
		written, _ := Format(r)
		again, _, err := Parse("f", written, true)
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("%v: %+v is written\n%s\nread %+v", err, r, written, again)
		}
	})
}
