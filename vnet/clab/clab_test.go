package clab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

func TestTopologyBecomesARequest(t *testing.T) {
	text, err := os.ReadFile("testdata/mixed.clab.yml")
	if err != nil {
		t.Fatal(err)
	}
	got, notes, err := Parse("mixed.clab.yml", text, Options{Files: func(source string) ([]vnet.File, error) {
		if source == "/none" {
			return nil, errors.New("there is none")
		}
		if source != "/tmp/b" {
			return nil, fmt.Errorf("read %s", source)
		}
		return []vnet.File{{Path: "b.conf", Text: "text of " + source, Mode: "0600"}, {Path: "in/two", Text: "two"}, {Path: "large", Text: strings.Repeat("x", vnet.MaxFile+1)}, {Path: "odd", Text: "\xff"}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := vnet.Request{Network: "mixed", Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{
			{Name: "c", Labels: map[string]string{"owner": "net"}, Setup: vnet.Setup{Image: "alpine:3", Run: []vnet.Program{
				{Cmd: []string{"sleep", "infinity"}, Entrypoint: true},
				{Cmd: []string{"sh", "-c", "'ip' 'route' 'add' '10.9.0.0/16' 'via' '10.0.0.1' || echo \"exec 2: exit code $?\" >&2\n'echo' 'it'\\''s' '$HOME' || echo \"exec 3: exit code $?\" >&2\necho 'exec: 3 ran'"}, Ready: vnet.Ready{Line: "exec: 3 ran"}},
			}}},
		},
		Routers: []vnet.VirtualNode{
			{Name: "a", CPU: vnet.Core / 2, Memory: 128 * vnet.MiB, Labels: map[string]string{"owner": "net", "role": "client"}, Setup: vnet.Setup{Image: "alpine:3", Env: map[string]string{"A": "b"}}},
			{Name: "b", Memory: vnet.GiB, Address: netip.MustParseAddr("172.100.100.11"), Protocol: vnet.ProtocolNone, Labels: map[string]string{"owner": "net"},
				Setup: vnet.Setup{Image: "alpine:3", Files: []vnet.File{{Path: "/x/b.conf", Text: "text of /tmp/b", Mode: "0600"}, {Path: "/x/in/two", Text: "two"}}}},
			{Name: "srl", Protocol: vnet.ProtocolNone, Labels: map[string]string{"owner": "net"}, Setup: vnet.Setup{Image: "ghcr.io/nokia/srlinux"}},
		},
		Switches: []vnet.VirtualSwitch{{Name: "br", Labels: map[string]string{"owner": "net"}}},
		Links: []vnet.VirtualLink{
			{Ends: [2]string{"a", "br"}, Interfaces: [2]string{"eth1", ""}, Addresses: vnet.LinkAddresses{{netip.MustParsePrefix("10.0.0.1/24")}, nil}}, {Ends: [2]string{"b", "br"}, Interfaces: [2]string{"eth1", ""}},
			{Ends: [2]string{"srl", "br"}, Interfaces: [2]string{"e1-1", ""}}, {Ends: [2]string{"a", "b"}, Interfaces: [2]string{"eth2", "eth2"}},
			{Ends: [2]string{"c", "br"}, Interfaces: [2]string{"net0", ""}, Addresses: vnet.LinkAddresses{{netip.MustParsePrefix("10.0.0.3/24")}, nil}},
		},
	}}
	want.Fill()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	var told []string
	for _, n := range notes {
		told = append(told, n.String())
		if kept := strings.Contains(n.Text, "is its address") || strings.Contains(n.Text, "is a copy"); n.Lost == kept {
			t.Errorf("lost is %v of %s", n.Lost, n)
		}
	}
	for _, part := range []string{
		"2:1: topology mixed: prefix", "3:1: topology mixed: mgmt",
		"kind nokia_srlinux: type", "node br: exec is left out: a node of this kind has none",
		`node b: binds: "/none:/y" is left out: there is none`, `node b: "/x/large" is left out of the node: it has more than`, `node b: "/x/odd" is left out of the node: it is not text`,
		"node b: mgmt-ipv4 172.100.100.11 is its address", "node srl: startup-config", "node srl: what containerlab does for kind nokia_srlinux",
		`node c: sysctl "kernel.panic" is left out`,
		"node out: kind host", "link 2: mtu", "link 4, b: mac", "link 5: its end at host", "link 6: its end at macvlan", "link 8: a link of type macvlan",
	} {
		if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("no note has %q:\n%s", part, strings.Join(told, "\n"))
		}
	}
}

func TestBadTopologies(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a request", "network: x\n", "f:1:1: this is no topology of containerlab"},
		{"nodes as a list", "name: x\ntopology:\n  nodes: [a]\n", "f:3:10: nodes has no fields"},
		{"exec as a word", "name: x\ntopology: {nodes: {a: {exec: ls}}}\n", "f:2:30: node a: exec is no list"},
		{"binds as a word", "name: x\ntopology: {nodes: {a: {binds: a}}}\n", "node a: binds is no list"},
		{"an endless quote", "name: x\ntopology: {nodes: {a: {cmd: \"'\"}}}\n", "this is no command"},
		{"a node as a word", "name: x\ntopology: {nodes: {a: b}}\n", "f:2:23: node a has no fields"},
		{"links as a mapping", "name: x\ntopology: {nodes: {a: {}}, links: {a: b}}\n", "links is no list"},
		{"one end", "name: x\ntopology: {nodes: {a: {}}, links: [{endpoints: [\"a:eth1\"]}]}\n", "link 1: endpoints are two"},
		{"an end without interface", "name: x\ntopology: {nodes: {a: {}, b: {}}, links: [{endpoints: [a, \"b:eth1\"]}]}\n", "an endpoint is a node and its interface"},
		{"an unknown end", "name: x\ntopology: {nodes: {a: {}}, links: [{endpoints: [\"a:eth1\", \"c:eth1\"]}]}\n", "there is no node c"},
		{"a link to itself", "name: x\ntopology: {nodes: {a: {}}, links: [{endpoints: [\"a:eth1\", \"a:eth2\"]}]}\n", "f:2:36: links[0]"},
		{"no nodes", "name: x\ntopology: {nodes: {}}\n", "no node at the start"},
		{"odd memory", "name: x\ntopology: {nodes: {a: {memory: lots}}}\n", "f:2:32: memory: lots is not a size"},
		{"endless memory", "name: x\ntopology: {nodes: {a: {memory: 99999999999999t}}}\n", "is not a size"},
		{"odd cores", "name: x\ntopology: {nodes: {a: {cpu: two}}}\n", "f:2:29: cpu:"},
		{"an alias", "name: &n x\ntopology: {nodes: {a: {}}}\n", "an anchor or alias"},
		{"a word twice", "name: x\nname: y\ntopology: {nodes: {a: {}}}\n", "f:2:1: name stands here again"},
		{"a kind that is none", "name: x\ntopology: {nodes: {a: {kind: [linux]}}}\n", "kind is no word"},
		{"a label that is a list", "name: x\ntopology: {nodes: {a: {labels: {k: [v]}}}}\n", "label k is no word"},
		{"a variable that is a list", "name: x\ntopology: {nodes: {a: {env: {k: [v]}}}}\n", "variable k is no word"},
		{"an odd variable", "name: x\ntopology: {nodes: {a: {env: {a b: v}}}}\n", "f:2:20: nodes[0].env"},
		{"labels as a list", "name: x\ntopology: {nodes: {a: {labels: [k]}}}\n", "labels has no fields"},
		{"a template", "name: x\ntopology:\n  nodes:\n{{- if .more }}\n    a: {}\n{{- end }}\n", "f:4:1: this is a template of a topology"},
		{"no YAML", "name: [", "f:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Parse("f", []byte(c.text), Options{})
			var input *vnet.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %s", err, c.want)
			}
		})
	}
}

func TestMemoryIsWrittenAsDockerDoes(t *testing.T) {
	for text, want := range map[string]vnet.Bytes{
		"67108864": 64 * vnet.MiB, "64m": 64 * vnet.MiB, "64MB": 64 * vnet.MiB, "64 MiB": 64 * vnet.MiB, "1.5g": 3 * vnet.GiB / 2, "65536kb": 64 * vnet.MiB, "67108864b": 64 * vnet.MiB,
	} {
		t.Run(text, func(t *testing.T) {
			r, _, err := Parse("f", []byte("name: x\ntopology: {nodes: {a: {memory: "+text+"}}}\n"), Options{})
			if err != nil || r.Nodes[0].Memory != want {
				t.Errorf("%+v, %v", r.Nodes, err)
			}
		})
	}
}

// What containerlab has words for comes back as it was.
func TestThereAndBack(t *testing.T) {
	r := vnet.Request{Network: "n", Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "a", Setup: vnet.Setup{Image: "docker.io/library/alpine:3", Env: map[string]string{"K": "a: b"}}, CPU: 250, Memory: 100*vnet.MiB + 1, Labels: map[string]string{"k": "v: w"}}, {Name: "b", Setup: vnet.Setup{Sysctls: map[string]string{"net.ipv4.tcp_ecn": "1"}, Files: []vnet.File{{Path: "/etc/x/b.conf", Text: "b\n"}, {Path: "/start", Text: "#!/bin/sh\n", Mode: "0755"}}}},
			{Name: "c", Setup: vnet.Setup{Run: []vnet.Program{{Cmd: []string{"sh", "-c", "echo 'a  b' $X"}, Restart: vnet.RestartAlways}}}},
			{Name: "d", Setup: vnet.Setup{Image: "x", Run: []vnet.Program{{Cmd: []string{"-v"}, Entrypoint: true}}}},
			{Name: "e", Setup: vnet.Setup{Image: "x", Run: []vnet.Program{{Cmd: []string{"sleep", "9"}}}}},
			{Name: "f", Setup: vnet.Setup{Image: "x", Run: append([]vnet.Program{{Entrypoint: true}}, scripts([]command{{1, []string{"touch", "it's"}}, {2, []string{"sh", "-c", "echo $X"}}})...)}},
			{Name: "g", Setup: vnet.Setup{Run: scripts([]command{{1, []string{"echo", "|| echo \"exec 1: exit code $?\" >&2 "}}})}}},
		Routers:  []vnet.VirtualNode{{Name: "r", Setup: vnet.Setup{Image: "frr", User: "1000:www"}}},
		Switches: []vnet.VirtualSwitch{{Name: "s"}},
		Links:    []vnet.VirtualLink{{Ends: [2]string{"a", "s"}}, {Ends: [2]string{"s", "b"}, Interfaces: [2]string{"", "lan"}}, {Ends: [2]string{"a", "b"}, Labels: map[string]string{"x": "1"}}, {Ends: [2]string{"a", "b"}}, {Ends: [2]string{"a", "r"}, Addresses: vnet.LinkAddresses{{netip.MustParsePrefix("10.0.0.1/30")}, {netip.MustParsePrefix("10.0.0.2/30"), netip.MustParsePrefix("2001:db8::1/64")}}}},
	}}
	r.Fill()
	text, files, notes := Format(r, "n.files")
	if len(notes) != 1 || notes[0].String() != "router r: protocol static: left out" { // containerlab computes no routes
		t.Errorf("lost %v", notes)
	}
	back, _, err := Parse("f", text, Options{Files: func(source string) ([]vnet.File, error) {
		i := slices.IndexFunc(files, func(f vnet.File) bool { return f.Path == source })
		if i < 0 {
			return nil, fmt.Errorf("there is no %s", source)
		}
		return []vnet.File{{Text: files[i].Text, Mode: files[i].Mode}}, nil
	}})
	if err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%v\n%s\ngot %+v\nwant %+v", err, text, back, r)
	}
}

func TestWhatContainerlabCannotSayIsTold(t *testing.T) {
	r := vnet.Request{Network: "n", For: 1, Movable: true, Colocate: vnet.ColocateForbidden, Topology: vnet.Topology{
		Nodes:   []vnet.VirtualNode{{Name: "a", Host: "h1", Site: "x", Setup: vnet.Setup{Workdir: "/srv", Files: []vnet.File{{Path: "/etc/a"}, {Path: "/srv/b"}}}}},
		Routers: []vnet.VirtualNode{{Name: "r", Protocol: vnet.ProtocolOSPF}},
		Links:   []vnet.VirtualLink{{Name: "l", Ends: [2]string{"a", "r"}, Bandwidth: [2]vnet.Bandwidth{{Max: 1000}, {Max: 1000}}, Latency: 5, Impair: [2]vnet.Impairment{{Loss: 1}}}},
	}}
	_, _, notes := Format(r, "")
	var told []string
	for _, n := range notes {
		told = append(told, n.String())
	}
	want := []string{"network n: window: left out", "network n: movable: left out", "network n: colocate: left out", "node a: site: left out", "node a: host: left out", "node a: file /etc/a: left out", "node a: file /srv/b: left out", "node a: workdir: left out", "router r: protocol ospf: left out", "link l: rates: left out", "link l: latency: left out", "link l: impairments: left out"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}

// Whatever the text, reading it ends without a panic, and a request that comes
// of it is a right one.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/mixed.clab.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("name: x\ntopology: {nodes: {a: {kind: bridge, labels: {a: [b]}}}, links: [{type: veth, endpoints: [{node: a}, {}]}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, _, err := Parse("f", text, Options{})
		var input *vnet.InputError
		if err != nil && !errors.As(err, &input) {
			t.Fatalf("%T %v", err, err)
		}
		if err == nil && r.Check() != nil {
			t.Fatal(r.Check())
		}
	})
}

// Forms and words that real topologies have: each is kept, or told by name.
func TestFormsOfRealTopologies(t *testing.T) {
	text, err := os.ReadFile("testdata/forms.clab.yml")
	if err != nil {
		t.Fatal(err)
	}
	r, notes, err := Parse("forms.clab.yml", text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Nodes) != 2 || len(r.Routers) != 3 || len(r.Switches) != 1 || len(r.Links) != 4 {
		t.Errorf("%d nodes, %d routers, %d switches, %d links", len(r.Nodes), len(r.Routers), len(r.Switches), len(r.Links))
	}
	var lost []string
	for _, n := range notes {
		if n.Lost {
			lost = append(lost, fmt.Sprintf("%s: %s", n.Where, strings.Fields(n.Text)[0]))
		}
	}
	slices.Sort(lost)
	want := []string{
		"kind nokia_srsim: license",
		"link 1: mtu", "link 1: vars", "link 3, pc: vars", "link 5: a", "link 6: a", "link 7: a", "link 8: a", "link 9: its",
		"node peer: what", "node pc: binds:", "node pc: dns",
		"node pc: healthcheck", "node pc: mgmt_ipv6", "node pc: ports", "node pc: stages",
		"node r1: startup-config", "node vm: what", "topology forms: mgmt",
	}
	slices.Sort(want)
	if !slices.Equal(lost, want) {
		t.Errorf("lost\n%s\nnot\n%s", strings.Join(lost, "\n"), strings.Join(want, "\n"))
	}
	for _, told := range []string{`interface "1/1/c1/1" is eth0`} {
		if !slices.ContainsFunc(notes, func(n vnet.Note) bool { return !n.Lost && strings.Contains(n.Text, told) }) {
			t.Errorf("%s is not told of: %v", told, notes)
		}
	}
}

// Without images, nodes of FRR's become routers with its file, whose addresses are
// those of the links; what cannot come over is told.
func TestFRRWithoutItsImage(t *testing.T) {
	const lab = `name: x
topology:
  nodes:
    r1: {kind: linux, image: "quay.io/frrouting/frr:10.2", binds: ["daemons:/etc/frr/daemons", "frr.conf:/etc/frr/frr.conf"]}
    r2: {kind: linux, image: frrouting/frr, binds: ["frr:/etc/frr"]}
    r3: {kind: linux, image: frrouting/frr}
    pc: {kind: linux, image: other/frr, cmd: sleep 9}
  links: [{endpoints: ["r1:eth1", "r2:eth1"]}, {endpoints: ["r1:eth2", "pc:eth1"]}, {endpoints: ["r2:eth2", "r3:eth1"]}]
`
	const config = "hostname r1\nlog syslog\ninterface eth1\n ip address 10.1.0.%s/24\nexit\ninterface lo\n ip address 10.9.0.1/32\nrouter ospf\n network 10.1.0.0/24 area 0\nline vty\n"
	read := func(source string) ([]vnet.File, error) {
		switch source {
		case "frr.conf":
			return []vnet.File{{Text: fmt.Sprintf(config, "1")}}, nil
		case "frr":
			return []vnet.File{{Path: "frr.conf", Text: fmt.Sprintf(config, "2")}, {Path: "vtysh.conf", Text: "x"}}, nil
		}
		return []vnet.File{{Text: "ospfd=yes\n"}}, nil
	}
	r, notes, err := Parse("f", []byte(lab), Options{Files: read, NoImages: true})
	if err != nil {
		t.Fatal(err)
	}
	const kept = "hostname r1\n!\ninterface eth1\n!\nexit\ninterface lo\n ip address 10.9.0.1/32\nrouter ospf\n network 10.1.0.0/24 area 0\n!\n"
	if len(r.Routers) != 2 || len(r.Nodes) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, n := range r.Routers {
		if n.FRR != kept || n.Protocol != vnet.ProtocolNone || n.Image != "" || n.Files != nil || r.Links[0].Addresses[i][0].String() != fmt.Sprintf("10.1.0.%d/24", i+1) {
			t.Errorf("%+v %v", n, r.Links[0].Addresses)
		}
	}
	if pc := r.Nodes[1]; pc.Image != "" || len(pc.Run) != 1 || pc.Run[0].Entrypoint {
		t.Errorf("%+v", pc)
	}
	var lost []string
	images := 0
	for _, n := range notes {
		if n.Lost {
			lost = append(lost, n.Where+": "+n.Text)
		} else if strings.Contains(n.Text, "is left out: it has the files of its host") {
			images++
		}
	}
	want := []string{
		`node r1: /etc/frr/frr.conf: line 2 is left out: "log" reads or writes files`, `node r2: /etc/frr/frr.conf: line 2 is left out: "log" reads or writes files`,
		"node r3: the routing of its image is left out: no bind or startup-config gives it /etc/frr/frr.conf",
	}
	if images != 4 || !slices.Equal(lost, want) {
		t.Errorf("%d images, lost %q", images, lost)
	}
}

// Users and addresses of ends come over; of a bind that is read only it is told
// that the copy is not.
func TestUsersAndAddresses(t *testing.T) {
	const lab = `name: x
topology:
  nodes: {a: {user: www, binds: ["f:/f:ro"]}, b: {user: "a b"}, s: {kind: bridge}}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
      ipv4: [10.0.0.1/24, 10.0.0.2/24]
      ipv6: ["2001:db8::1/64", ""]
    - type: veth
      endpoints: [{node: a, interface: eth2, ipv4: 10.0.1.1/24}, {node: s, interface: p1, ipv4: 10.0.1.2/24}]
    - endpoints: ["b:eth2", "s:p2"]
      ipv4: [10.0.1.3]
`
	r, notes, err := Parse("f", []byte(lab), Options{Files: func(string) ([]vnet.File, error) { return []vnet.File{{Text: "x"}}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Links[0].Addresses, r.Links[1].Addresses); got != "[[10.0.0.1/24 2001:db8::1/64] [10.0.0.2/24]] [[10.0.1.1/24] []]" {
		t.Errorf("addresses %s", got)
	}
	if a := r.Routers[0]; a.User != "www" {
		t.Errorf("%+v", a)
	}
	var told []string
	for _, n := range notes {
		told = append(told, fmt.Sprint(n.Lost, " ", n.Where, ": ", n.Text))
	}
	want := []string{
		`false node a: binds: "f:/f:ro" is a copy, which the node may write`,
		`true node b: user "a b" is left out: it is none`,
		"true link 2, s: address \"10.0.1.2/24\" is left out: a bridge has none",
		"true link 3, b: address \"10.0.1.3\" is left out: it is none with a prefix, such as 10.0.0.1/24",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}
