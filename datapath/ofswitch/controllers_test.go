package ofswitch

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sublet/openflow/channel"
)

// application is a controller as it is published: how it is started at a port, and
// what it has to make of a switch whose datapath identifier is abc.
type application struct {
	name    string
	command func(t *testing.T, port string) *exec.Cmd // nil: it is not installed
	works   func(t *testing.T, far []*device)
}

var applications = []application{
	{"simple_switch_13", ofRyu("simple_switch_13"), learnsStations},
	{"ofctl_rest", ofRyu("ofctl_rest"), takesEntriesByREST},
	{"rest_router", ofRyu("rest_router"), answersAsRouter},
	{"faucet", faucet, learnsStations},
	{"ovs-testcontroller", testcontroller, learnsStations},
}

// Controllers that others wrote work both datapaths, unchanged.
func TestSoakControllers(t *testing.T) {
	for _, a := range applications {
		t.Run(a.name, func(t *testing.T) { onBoth(t, a.run) })
	}
}

func (a application) run(t *testing.T, inKernel bool) {
	address := unused(t)
	_, port, _ := net.SplitHostPort(address)
	cmd := a.command(t, port)
	if cmd == nil {
		t.Skip(a.name + " is not installed")
	}
	far := wires(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		if cmd.Wait(); t.Failed() {
			t.Logf("%s said:\n%s", a.name, said.String())
		}
	}()
	passive(t, inKernel, channel.Target{Address: address})
	a.works(t, far)
}

// Open vSwitch's client, by OpenFlow 1.3, finds what it has made, alone and in bundles.
func TestOvsOfctl(t *testing.T) { onBoth(t, ovsOfctl) }

func ovsOfctl(t *testing.T, inKernel bool) {
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("ovs-ofctl is not installed")
	}
	far := wires(t)
	at := passive(t, inKernel)
	do := func(verb string, args ...string) string { t.Helper(); return ofctl(t, "OpenFlow13", at, verb, args...) }
	do("add-group", "group_id=7,type=indirect,bucket=actions=output:2")
	do("add-meter", "meter=3,pktps,band=type=drop,rate=100000")
	list := filepath.Join(t.TempDir(), "flows")
	if err := os.WriteFile(list, []byte("cookie=5,priority=9,ip,nw_dst=10.0.1.12,actions=meter:3,dec_ttl,group:7\npriority=1,actions=drop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do("add-flows", "--bundle", list)
	far[0].write(stationFrame(t, 11, 12), nil)
	if got := arrives(far[1], 10*time.Second); len(got) < 23 || got[22] != 63 {
		t.Errorf("%x came", got)
	}
	for verb, want := range map[string]string{
		"show": "n_tables:4", "dump-flows": "cookie=0x5, ", "dump-groups": "group_id=7,type=indirect,bucket=actions=output:2", "dump-group-stats": "packet_count=1",
		"dump-meters": "meter=3 pktps bands=", "meter-stats": "packet_in_count:1", "meter-features": "max_meter:4", "dump-ports": "rx pkts=1", "dump-ports-desc": "1(p1)",
		"dump-tables": "matched=1", "dump-table-features": "max_entries=100", "dump-group-features": "max_groups=0x4", "dump-aggregate": "flow_count=2", "queue-get-config": "",
	} {
		if text := do(verb); !strings.Contains(text, want) {
			t.Errorf("%s has no %q:\n%s", verb, want, text)
		}
	}
	do("mod-port", "p2", "no-forward")
	do("replace-flows", "--bundle", os.DevNull)
	if text := do("dump-flows"); strings.Contains(text, "actions") {
		t.Errorf("flows:\n%s", text)
	}
}

// ofRyu is an application of os-ken, or of Ryu, which os-ken comes from, whichever
// OSKEN_PYTHON has.
func ofRyu(name string) func(*testing.T, string) *exec.Cmd {
	return func(_ *testing.T, port string) *exec.Cmd {
		python := "python3"
		if p := os.Getenv("OSKEN_PYTHON"); p != "" {
			python = p
		}
		for _, package_ := range []string{"os_ken", "ryu"} {
			app := package_ + ".app." + name
			find := fmt.Sprintf("import importlib.util as u, sys; sys.exit(not (u.find_spec(%q) and u.find_spec(%q)))", app, package_+".cmd.manager")
			if exec.Command(python, "-c", find).Run() == nil {
				return exec.Command(python, "-m", package_+".cmd.manager", "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", port, app)
			}
		}
		return nil
	}
}

const faucetConfig = `
vlans: {office: {vid: 100}}
dps:
  s1: {dp_id: 0xabc, hardware: "Open vSwitch", interfaces: {1: {native_vlan: office}, 2: {native_vlan: office}, 3: {native_vlan: office}}}
`

func faucet(t *testing.T, port string) *exec.Cmd {
	program := "faucet"
	if p := os.Getenv("FAUCET"); p != "" {
		program = p
	}
	program, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "faucet.yaml"), []byte(faucetConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--ryu-ofp-tcp-listen-port", port)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "FAUCET_CONFIG="+dir+"/faucet.yaml", "FAUCET_LOG=STDERR", "FAUCET_EXCEPTION_LOG=STDERR", "FAUCET_EVENT_SOCK=0", "FAUCET_PROMETHEUS_ADDR=127.0.0.1")
	return cmd
}

func testcontroller(t *testing.T, port string) *exec.Cmd {
	if _, err := exec.LookPath("ovs-testcontroller"); err != nil {
		return nil
	}
	return exec.Command("ovs-testcontroller", "--unixctl="+t.TempDir()+"/ctl", "ptcp:"+port+":127.0.0.1")
}

// stationFrame is a datagram from one station to another.
func stationFrame(t *testing.T, from, to byte) []byte {
	mac := func(n byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, n} }
	v4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 1, from}, DstIP: net.IP{10, 0, 1, to}}
	udp := &layers.UDP{SrcPort: 5, DstPort: 7}
	udp.SetNetworkLayerForChecksum(v4)
	return serialized(t, &layers.Ethernet{SrcMAC: mac(from), DstMAC: mac(to), EthernetType: layers.EthernetTypeIPv4}, v4, udp, gopacket.Payload(make([]byte, 40)))
}

const appPatience = 30 * time.Second

// learnsStations wants frames between the first two stations to come to no third one.
func learnsStations(t *testing.T, far []*device) {
	there, back := stationFrame(t, 11, 12), stationFrame(t, 12, 11)
	for end := time.Now().Add(appPatience); time.Now().Before(end); {
		for _, d := range far {
			arrives(d, time.Millisecond) // what was flooded
		}
		far[1].write(back, nil)
		arrives(far[0], 100*time.Millisecond)
		far[0].write(there, nil)
		if got := arrives(far[1], 100*time.Millisecond); bytes.Equal(got, there) && arrives(far[2], 100*time.Millisecond) == nil {
			return
		}
	}
	t.Error("frames for the second station come to the third, too, or to none")
}

// request asks the application, which may not listen yet.
func request(t *testing.T, method, path, body, want string) {
	t.Helper()
	var text []byte
	for end := time.Now().Add(appPatience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequest(method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			continue
		}
		text, _ = io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK && strings.Contains(string(text), want) {
			return
		}
	}
	t.Errorf("%s %s: no %q in %s", method, path, want, text)
}

// takesEntriesByREST wants an entry that was posted to hold, and all kinds of
// statistics to be answered.
func takesEntriesByREST(t *testing.T, far []*device) {
	request(t, "GET", "/stats/switches", "", "2748")
	request(t, "POST", "/stats/flowentry/add", `{"dpid": 2748, "priority": 5, "match": {"in_port": 1, "eth_type": 2048, "ipv4_dst": "10.0.1.12"}, "actions": [{"type": "DEC_NW_TTL"}, {"type": "OUTPUT", "port": 2}]}`, "")
	for end := time.Now().Add(appPatience); ; {
		far[0].write(stationFrame(t, 11, 12), nil)
		if got := arrives(far[1], 100*time.Millisecond); got != nil {
			if got[22] != 63 {
				t.Errorf("time to live of %x", got)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("the entry does nothing")
		}
	}
	for path, want := range map[string]string{
		"/stats/flow/2748": `"nw_dst": "10.0.1.12"`, "/stats/desc/2748": "Sublet", "/stats/port/2748": `"rx_packets"`, "/stats/portdesc/2748": `"p1"`, "/stats/table/2748": `"lookup_count"`,
		"/stats/aggregateflow/2748": `"flow_count": 1`, "/stats/tablefeatures/2748": `"max_entries"`, "/stats/groupfeatures/2748": `"SELECT"`, "/stats/meterfeatures/2748": `"max_meter"`, "/stats/role/2748": `"EQUAL"`,
	} {
		request(t, "GET", path, "", want)
	}
}

// answersAsRouter gives a router an address, and asks by ARP who has it.
func answersAsRouter(t *testing.T, far []*device) {
	request(t, "POST", "/router/0000000000000abc", `{"address": "10.0.1.1/24"}`, "success")
	asks := serialized(t, &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 11}, DstMAC: layers.EthernetBroadcast, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{AddrType: 1, Protocol: 0x0800, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1, SourceHwAddress: []byte{2, 0, 0, 0, 0, 11}, SourceProtAddress: []byte{10, 0, 1, 11}, DstHwAddress: make([]byte, 6), DstProtAddress: []byte{10, 0, 1, 1}}, gopacket.Payload(make([]byte, 18)))
	for end := time.Now().Add(appPatience); time.Now().Before(end); {
		far[0].write(asks, nil)
		if got := arrives(far[0], 200*time.Millisecond); len(got) >= 42 && got[21] == 2 && bytes.Equal(got[28:32], []byte{10, 0, 1, 1}) {
			return
		}
	}
	t.Error("nobody answers for the router's address")
}
