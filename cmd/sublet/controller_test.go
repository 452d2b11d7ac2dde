package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/openflow/controller"
	"sublet/vnet/file"
)

// What is wrong on the command line of a controller is told in one line, and
// nothing is begun.
func TestControllerBadInput(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--app", "hub"}, `--app "hub": there are learning, paths, and learning,paths`},
		{[]string{"--app", ""}, "--app: state learning, paths, or learning,paths"},
		{[]string{"--connect", "udp:192.0.2.1:6653"}, `--connect "udp:192.0.2.1:6653": write tcp:HOST:PORT`},
		{[]string{"--connect", "tcp:192.0.2.1"}, "write HOST:PORT"},
		{[]string{"--role", "/nowhere/role"}, "--role: open /nowhere/role: no such file"},
		{[]string{"--cert", "c.pem"}, "TLS needs --cert, --key and --ca"},
		{[]string{"--cert", "c.pem", "--key", "k.pem", "--ca", "ca.pem"}, "c.pem: no such file"},
		{[]string{"--topology", "t.yaml"}, "--topology: only --app paths discovers one"},
		{[]string{"--app", "paths", "--topology", "/nowhere/t.yaml"}, "there is no directory /nowhere"},
	} {
		code, _, errs := sublet(t, "", append([]string{"controller"}, c.args...)...)
		if code != exitInput || !strings.Contains(errs, c.want) || strings.Count(strings.TrimSpace(errs), "\n") > 0 {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
}

// A topology is kept as a substrate that embeds requests; without stations there
// is none.
func TestTopologyIsASubstrate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "topology.yaml")
	write := writeTopology(name, slog.New(slog.NewTextHandler(t.Output(), nil)))
	at := func(dpid uint64, port, speed uint32) controller.TopologyPort {
		return controller.TopologyPort{DatapathID: dpid, Port: port, Speed: speed}
	}
	topology := controller.Topology{
		Switches: []uint64{1, 0xfedcba9876543210},
		Links: []controller.TopologyLink{
			{Ends: [2]controller.TopologyPort{at(1, 2, 100_000), at(0xfedcba9876543210, 4_000_000_000, 0)}},
			{Ends: [2]controller.TopologyPort{at(1, 3, 0), at(0xfedcba9876543210, 5, 1)}},
		},
	}
	if write(topology); exists(name) {
		t.Error("a substrate without hosts was written")
	}
	topology.Stations = []controller.TopologyStation{{Address: 0x0200000000aa, At: at(1, 1, 10_000_000)}, {Address: 3, At: at(0xfedcba9876543210, 1, 0)}}
	write(topology)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.ParseSubstrate(name, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(s.Hosts) != 2 || len(s.Switches) != 2 || len(s.Links) != 4 || s.Links[0].Capacity != 100_000_000 || s.Links[2].Capacity != 10_000_000_000 {
		t.Errorf("%s", text)
	}
	request := filepath.Join(filepath.Dir(name), "r.yaml")
	if err := os.WriteFile(request, []byte("network: n\nnodes: [{name: a, host: h-0200000000aa}, {name: b, host: h-000000000003}]\nlinks: [{ends: [a, b], rate: 50Mbit}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := sublet(t, "", "up", "--dry-run", "--substrate", name, request); code != 0 {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// A role that cannot be read is refused at the beginning, and later changes nothing.
func TestRoleFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "role")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"", "master", "master x", "master -1", "equal 1", "master 1 2", "slave 18446744073709551616"} {
		write(text)
		if code, _, errs := sublet(t, "", "controller", "--role", name); code != exitInput || !strings.Contains(errs, `write "master 7" or "slave 7"`) {
			t.Errorf("%q: %d %s", text, code, errs)
		}
	}
	write("slave 3\n")
	role, err := roleOf(name, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want controller.Role
	}{{"slave 3", controller.Role{Generation: 3}}, {"master 18446744073709551615", controller.Role{Master: true, Generation: 1<<64 - 1}}, {"mast", controller.Role{Master: true, Generation: 1<<64 - 1}}, {"slave 5", controller.Role{Generation: 5}}} {
		if write(c.text); role() != c.want {
			t.Errorf("%q is %+v", c.text, role())
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// A file of virtual routers is refused where it is wrong, with the place.
func TestVxRoutersBadInput(t *testing.T) {
	good, err := os.ReadFile("../../examples/openflow/vxrouters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "v.yaml")
	for _, c := range []struct{ from, to, want string }{
		{"dl_vlan=6", "dl_vlan=5", "router blue and router green: both take packets of port 1"},
		{"entries: 20", "entries: 3", "need 6 entries, and the switch has 3"},
		{"meters: 4", "meters: 1", "need 2 meters, and the switch has 1"},
		{"vxlink: green", "vxlink: blue", "both use link blue"},
		{"rate: 2Mbit", "queue: 1, rate: 2Mbit", "state either rate, for a meter, or queue"},
		{"rate: 2Mbit", "rate: 1kbit", "a meter has"},
		{"port: 2, rate: 2Mbit", "port: 3, rate: 2Mbit", "leaves at port 3, which is none of its ports"},
		{"mode: active", "mode: passive", `mode "passive"`},
		{"tp_dst=5201", "tp_dst=x", "match:"},
		{"10.1.0.0/16", "10.1.0.1/16", "write a network"},
		{`datapath_id: "2"`, `datapath_id: "x"`, "hexadecimal"},
		{"entries: 20", "entries: 20\n    slow-path: 3", "slow-path"},
	} {
		text := strings.Replace(string(good), c.from, c.to, 1)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := sublet(t, "", "controller", "--app", "paths", "--vxrouters", name)
		if code != exitInput || !strings.Contains(errs, c.want) || !strings.Contains(errs, "v.yaml:") {
			t.Errorf("%s: %d %s", c.to, code, errs)
		}
	}
	if _, err := readVxRouters("../../examples/openflow/vxrouters.yaml"); err != nil {
		t.Error(err)
	}
}
