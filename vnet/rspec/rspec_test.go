package rspec

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

func sample(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/lan.rspec")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRequest(t *testing.T) {
	r, notes, err := Parse("a/lan.rspec", sample(t))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(r.Network)}
	for _, n := range r.Nodes {
		got = append(got, fmt.Sprint(n.Name, " ", n.CPU, " ", n.Memory, " ", n.Exclusive, " ", n.Address, " ", n.Labels))
	}
	for _, l := range r.Links {
		got = append(got, fmt.Sprintf("%s %v: %s, back %s", l.Name, l.Ends, l.Bandwidth[vnet.Forward], l.Bandwidth[vnet.Reverse]))
	}
	want := `lan
web-server 2 512MiB true 10.1.1.1 map[site:Site 1]
web-server-2 0 0B false invalid IP map[]
c 0 0B false invalid IP map[]
web-server-lan0 [web-server lan0]: 100Mbit, back 10Mbit
web-server-2-lan0 [web-server-2 lan0]: 10Mbit, back 100Mbit
c-lan0 [c lan0]: best effort, back 50Mbit
back [web-server-2 c]: 1544kbit, back best effort`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
	if got := fmt.Sprint(r.Links[3].Impair); got != "[delay=20ms loss=1% ]" {
		t.Errorf("impairments %s", got)
	}
	var told []string
	for _, n := range notes {
		told = append(told, fmt.Sprint(n, " ", n.Lost))
	}
	for _, part := range []string{
		"node web.server: is named web-server false", "node web server: is named web-server-2 false",
		"node web-server: component_manager_id is left out: state site or host of the substrate true", "node web-server: icon is left out false",
		"node web-server: site Site 1 is kept as a label false", "node web-server: sliver_type emulab-xen is left out: nodes are network namespaces true",
		"node web-server: disk is left out", "node web-server: disk_image is left out true",
		"node c: hardware_type d430 is left out true", "link back: link_type gre-tunnel is left out true",
	} {
		if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("no note says %q:\n%s", part, strings.Join(told, "\n"))
		}
	}
}

const routed = `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3">
<node client_id="a"><services><execute shell="bash" command="echo a; exit 3"/><execute command="true"/><execute shell="tcsh" command="x"/></services><interface client_id="a:0"><ip address="10.1.0.1" netmask="255.255.255.0"/></interface></node>
<node client_id="r"><interface client_id="r:0"><ip address="10.1.0.2" netmask="255.255.255.0"/></interface><interface client_id="r:1"><ip address="10.2.0.2" netmask="255.255.0.0"/><ip address="fd00::2" netmask="64" type="ipv6"/></interface><interface client_id="r:2"><ip address="10.3.0.2" netmask="255.255.255.0"/></interface></node>
<node client_id="b"><interface client_id="b:0"><ip address="10.2.0.3" netmask="255.255.0.0"/><ip address="10.2.0.4" netmask="255.0.255.0"/></interface></node>
<link client_id="ar"><interface_ref client_id="a:0"/><interface_ref client_id="r:0"/></link>
<link client_id="rb"><interface_ref client_id="r:1"/><interface_ref client_id="b:0"/></link>
</rspec>`

// Where nodes have several addresses they are those of links' ends, with their subnets;
// what is executed runs.
func TestAddressesAndCommands(t *testing.T) {
	r, notes, err := Parse("r.rspec", []byte(routed))
	if err != nil {
		t.Fatal(err, notes)
	}
	if got := fmt.Sprint(r.Links[0].Addresses, r.Links[1].Addresses); got != "[[10.1.0.1/24] [10.1.0.2/24]] [[10.2.0.2/16 fd00::2/64] [10.2.0.3/16]]" {
		t.Errorf("addresses %s", got)
	}
	for _, p := range r.Nodes[0].Run {
		out, err := exec.Command(p.Cmd[0], p.Cmd[1:]...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), p.Ready.Line) {
			t.Errorf("%q printed %q, %v", p.Cmd, out, err)
		}
	}
	if got := fmt.Sprint(len(r.Nodes[0].Run), r.Nodes[0].Run[0].Cmd[3]); got != "2echo a; exit 3" {
		t.Errorf("run %s", got)
	}
	var lost []string
	for _, n := range notes {
		if n.Lost {
			lost = append(lost, n.Text)
		}
	}
	if want := []string{"execute by tcsh is left out: sh and bash are known", "address 10.2.0.4 is left out: it needs a netmask, such as 255.255.255.0", "its addresses are left out: it is at no link"}; !slices.Equal(lost, want) {
		t.Errorf("lost are %q", lost)
	}
}

const advertised = `<rspec type="advertisement" xmlns="http://www.geni.net/resources/rspec/3">
<node component_id="urn:publicid:IDN+emulab.net+node+pc1" component_manager_id="urn:publicid:IDN+emulab.net+authority+cm" component_name="pc1" exclusive="true"><interface component_id="pc1:eth0"/></node>
<node component_id="urn:publicid:IDN+emulab.net+node+pc2"><interface component_id="pc2:eth0"/><available now="false"/></node>
<node component_id="urn:publicid:IDN+emulab.net+node+sw1" component_name="sw1"><hardware_type name="switch"/><interface component_id="sw1:1"/><interface component_id="sw1:2"/></node>
<link component_id="urn:publicid:IDN+emulab.net+link+l1"><interface_ref component_id="pc1:eth0"/><interface_ref component_id="sw1:1"/><property source_id="pc1:eth0" dest_id="sw1:1" capacity="10000000" latency="0.5"/></link>
<link component_id="urn:publicid:IDN+emulab.net+link+l2"><interface_ref component_id="pc2:eth0"/><interface_ref component_id="sw1:2"/></link>
</rspec>`

func TestSubstrate(t *testing.T) {
	s, notes, err := ParseSubstrate("ad.xml", []byte(advertised))
	if err != nil || len(s.Hosts) != 2 || len(s.Links) != 2 || !slices.Equal(s.Switches, []string{"sw1"}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if h := s.Hosts[0]; h.Name != "pc1" || h.Site != "emulab-net" || s.Hosts[1].Name != "pc2" {
		t.Errorf("hosts %+v", s.Hosts)
	}
	if l := s.Links[0]; l.Capacity != 10*vnet.Gbit || l.Latency != 500*time.Microsecond || s.Links[1].Capacity != vnet.Gbit {
		t.Errorf("links %+v", s.Links)
	}
	if len(notes) != 2 || !strings.Contains(notes[0].String(), "pc2: is not available now") || !strings.Contains(notes[1].String(), "link l2: its capacity is not stated, taken for 1Gbit") {
		t.Errorf("notes %v", notes)
	}
}

// A request is a substrate of the same form.
func TestRequestAsSubstrate(t *testing.T) {
	s, _, err := ParseSubstrate("lan.rspec", sample(t))
	if err != nil || len(s.Hosts) != 3 || len(s.Switches) != 1 || len(s.Links) != 4 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestBadDocuments(t *testing.T) {
	node := func(inside string) string { return `<rspec><node client_id="a">` + inside + `</node></rspec>` }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "f:1:1: not XML: EOF"},
		{"another root", "<graphml/>", "the root is <graphml>"},
		{"an open element", "<rspec><node>", "not XML"},
		{"two roots", "<rspec/><rspec/>", "a second root begins here"},
		{"no node", "<rspec/>", "no node at the start"},
		{"an advertisement", advertised, "this is an advertisement"},
		{"no such interface", `<rspec><node client_id="a"/><link client_id="l"><interface_ref client_id="x"/></link></rspec>`, "there is no interface x"},
		{"an interface twice", node(`<interface client_id="i"/><interface client_id="i"/>`), `an interface needs an id of its own, and "i" is none`},
		{"an interface without id", node(`<interface/>`), "needs an id of its own"},
		{"odd cores", node(`<sliver_type><xen cores="two"/></sliver_type>`), "node a: cores:"},
		{"odd memory", node(`<sliver_type><xen ram="1 lot"/></sliver_type>`), "ram: 1 lot is no number of MiB"},
		{"an odd capacity", strings.Replace(string(sample(t)), `capacity="1544"`, `capacity="NaN"`, 1), "f:20:97: capacity NaN is no number of kbit/s"},
		{"an odd latency", strings.Replace(string(sample(t)), `latency="20"`, `latency="-1"`, 1), "f:20:98: latency -1 is no number of ms"},
		{"a loss of more than all", strings.Replace(string(sample(t)), `"0.01"`, `"1.01"`, 1), "packet_loss 1.01 is no number from 0 to 1"},
		{"a capacity below all", strings.Replace(string(sample(t)), `capacity="1544"`, `capacity="0.001"`, 1), "f:18:26: links[3].min"},
		{"an unknown entity", "<rspec>&lol;</rspec>", "not XML: invalid character entity &lol;"},
		{"an entity of its own", `<!DOCTYPE rspec [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rspec>&b;</rspec>`, "invalid character entity &b;"},
		{"a deep one", "<rspec>" + strings.Repeat("<node>", 100_000), "not XML"},
		{"a large one", strings.Repeat(" ", MaxSize+1), "more than 4194304"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Parse("f", []byte(c.text))
			var input *vnet.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, not %s", err, c.want)
			}
		})
	}
}

// Whatever the text, reading it ends, and what comes of it is right.
func FuzzParse(f *testing.F) {
	f.Add(sample(f))
	f.Add([]byte(advertised))
	f.Fuzz(func(t *testing.T, text []byte) {
		var input *vnet.InputError
		r, _, err := Parse("f", text)
		if err != nil && !errors.As(err, &input) {
			t.Fatalf("%T %v", err, err)
		}
		if err == nil && r.Check() != nil {
			t.Fatal(r.Check())
		}
		s, _, err := ParseSubstrate("f", text)
		if err != nil && !errors.As(err, &input) {
			t.Fatalf("%T %v", err, err)
		}
		if err == nil && s.Check() != nil {
			t.Fatal(s.Check())
		}
	})
}

// A capacity may be a speed as people write them.
func TestCapacityWithUnit(t *testing.T) {
	r, _, err := Parse("f", []byte(strings.Replace(string(sample(t)), `capacity="1544"`, `capacity="OC-3c"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Links {
		for _, b := range l.Bandwidth {
			if b.Min == 155520*vnet.Kbit {
				return
			}
		}
	}
	t.Errorf("%+v", r.Links)
}

// A packet on a LAN is late and lost once, on the link of the node that sends it;
// what is not the same to all others is told.
func TestImpairmentsOfALAN(t *testing.T) {
	const head = `<rspec><node client_id="a"><interface client_id="a:0"/></node><node client_id="b"><interface client_id="b:0"/></node><node client_id="c"><interface client_id="c:0"/></node>` +
		`<link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/><interface_ref client_id="c:0"/>`
	for _, c := range []struct{ properties, want, lost string }{
		{`<property source_id="a:0" dest_id="b:0" latency="5"/><property source_id="a:0" dest_id="c:0" latency="5"/>`, "[delay=5ms ] [ ] [ ]", ""},
		{`<property source_id="a:0" latency="5" packet_loss="0.01"/>`, "[delay=5ms loss=1% ] [ ] [ ]", ""},
		{`<property latency="5"/>`, "[delay=5ms ] [delay=5ms ] [delay=5ms ]", ""},
		{`<property source_id="a:0" latency="5"/><property source_id="a:0" dest_id="b:0" latency="4"/>`, "[delay=5ms ] [ ] [ ]", ""},
		{`<property source_id="a:0" dest_id="b:0" latency="5"/>`, "[ ] [ ] [ ]", "from a:0 are left out"},
		{`<property source_id="a:0" dest_id="b:0" latency="5"/><property source_id="a:0" dest_id="c:0" latency="6"/>`, "[ ] [ ] [ ]", "from a:0 are left out"},
		{`<property source_id="a:0" dest_id="b:0" capacity="5000"/>`, "[ ] [ ] [ ]", ""},
	} {
		r, notes, err := Parse("f", []byte(head+c.properties+"</link></rspec>"))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Links[0].Impair, " ", r.Links[1].Impair, " ", r.Links[2].Impair); got != c.want || len(notes) > 0 != (c.lost != "") || !strings.Contains(fmt.Sprint(notes), c.lost) {
			t.Errorf("%s: %s, notes %v", c.properties, got, notes)
		}
	}
}
