package vnode

import (
	"encoding/json"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kdomanski/iso9660"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// twoCards are a machine's, one at a peer and one in a subnet.
func twoCards() []nic {
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	return []nic{
		{
			Link:      kernel.Link{Index: 2, Name: "eth0", MTU: 1400, Hardware: [6]byte{2, 0xab, 0, 0, 0, 1}},
			addresses: []kernel.Address{{Local: a("10.0.0.1"), Reach: p("10.0.0.2/32")}},
			routes:    []kernel.Route{{Prefix: p("10.0.0.3/32"), Via: a("10.0.0.2")}, {Prefix: p("10.0.0.4/32")}},
		},
		{
			Link:      kernel.Link{Index: 3, Name: "eth1", MTU: 1500, Hardware: [6]byte{2, 0xab, 0, 0, 0, 2}},
			addresses: []kernel.Address{{Local: a("192.168.1.7"), Reach: p("192.168.1.0/24")}, {Local: a("2001:db8::7"), Reach: p("2001:db8::/64")}},
		},
	}
}

func seedFor(t *testing.T) seed {
	t.Helper()
	return seedOf("m1", vnet.Setup{
		Env:     map[string]string{"A": "it's\n$x", "B": "\"b\""},
		Workdir: "/srv",
		Sysctls: map[string]string{"net.ipv4.tcp_ecn": "1"},
		Files:   []vnet.File{{Path: "/etc/x", Text: "grüße\n"}, {Path: "/etc/y", Text: "#cloud-config\n", Mode: "0600"}},
		Run:     []vnet.Program{{Cmd: []string{"sh", "-c", "echo $A; rm -rf /x"}}},
	}, twoCards(), "10.0.0.1 m1\n")
}

// What a machine is given is in its seed as data: no text becomes a command or
// another setting.
func TestSeedSaysWhatWasGiven(t *testing.T) {
	s := seedFor(t)
	text, ok := strings.CutPrefix(string(s.UserData), "#cloud-config\n")
	if !ok {
		t.Fatalf("user-data begins with %.20q", s.UserData)
	}
	var user struct {
		Hostname string     `json:"hostname"`
		Files    []file     `json:"write_files"`
		Boot     [][]string `json:"bootcmd"`
		Run      [][]string `json:"runcmd"`
	}
	if err := json.Unmarshal([]byte(text), &user); err != nil {
		t.Fatal(err)
	}
	if want := []file{
		{Path: variablesFile, Text: "export A='it'\\''s\n$x'\nexport B='\"b\"'\n", Mode: "0644"},
		{Path: settingsFile, Text: "net.ipv4.tcp_ecn = 1\n", Mode: "0644"},
		{Path: "/etc/x", Text: "grüße\n", Mode: "0644"}, {Path: "/etc/y", Text: "#cloud-config\n", Mode: "0600"},
		{Path: "/etc/hosts", Text: "10.0.0.1 m1\n", Append: true},
	}; user.Hostname != "m1" || !reflect.DeepEqual(user.Files, want) {
		t.Errorf("%s: files %+v", user.Hostname, user.Files)
	}
	if want := [][]string{{".", variablesFile}, {"sysctl", "-q", "-p", settingsFile}, {"mkdir", "-p", "/srv"}, {"cd", "/srv"}, {"sh", "-c", "echo $A; rm -rf /x"}}; !reflect.DeepEqual(user.Run, want) {
		t.Errorf("runs %q", user.Run)
	}
	if want := [][]string{
		{"ip", "route", "replace", "10.0.0.2/32", "dev", "eth0"}, {"ip", "route", "replace", "10.0.0.4/32", "dev", "eth0"},
		{"ip", "route", "replace", "10.0.0.3/32", "via", "10.0.0.2", "onlink", "dev", "eth0"},
	}; !reflect.DeepEqual(user.Boot, want) {
		t.Errorf("routes %q", user.Boot)
	}
	var network struct {
		Version   int                 `json:"version"`
		Ethernets map[string]ethernet `json:"ethernets"`
	}
	if err := json.Unmarshal(s.NetworkConfig, &network); err != nil {
		t.Fatal(err)
	}
	e := network.Ethernets["eth0"]
	if network.Version != 2 || len(network.Ethernets) != 2 || e.Match["macaddress"] != "02:ab:00:00:00:01" || e.Name != "eth0" || e.MTU != 1400 ||
		!slices.Equal(e.Addresses, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}) || len(e.Routes) != 3 {
		t.Errorf("network %s", s.NetworkConfig)
	}
	if got := network.Ethernets["eth1"].Addresses; len(got) != 2 || got[0].String() != "192.168.1.7/24" || got[1].String() != "2001:db8::7/64" {
		t.Errorf("addresses in subnets: %v", got)
	}
}

// The file system has the names that cloud-init looks for, and cannot be changed.
func TestSeedIsAnImage(t *testing.T) {
	s := seedFor(t)
	f, err := s.image()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte("x")); err == nil {
		t.Error("its file can be written")
	}
	image, err := iso9660.OpenImage(f)
	if err != nil {
		t.Fatal(err)
	}
	if label, err := image.Label(); label != "cidata" {
		t.Errorf("label %q, %v", label, err)
	}
	root, err := image.RootDir()
	if err != nil {
		t.Fatal(err)
	}
	children, err := root.GetChildren()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		text, _ := io.ReadAll(c.Reader())
		if want := map[string][]byte{"meta-data": s.MetaData, "user-data": s.UserData, "network-config": s.NetworkConfig}[c.Name()]; string(text) != string(want) || want == nil {
			t.Errorf("%s has %q", c.Name(), text)
		}
	}
	if len(children) != 3 {
		t.Errorf("%d files", len(children))
	}
}
