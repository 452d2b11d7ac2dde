package ofswitch

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// unused gives an address where nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// passive runs a switch that listens, and gives its address. It connects to others too.
func passive(t *testing.T, inKernel bool, others ...channel.Target) (address string) {
	t.Helper()
	address = unused(t)
	s, err := New(Config{
		Pipeline: pipeline.Config{DatapathID: 0xabc, Tables: 4, Entries: 100, Groups: 4, Meters: 4}, Ports: []string{"p1", "p2", "p3"},
		Controllers: append(others, channel.Target{Passive: true, Address: address}), Kernel: inKernel, Log: func(err error) { t.Log(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return address
}

// ofctl10 runs ovs-ofctl with OpenFlow 1.0 alone.
func ofctl10(t *testing.T, address, verb string, args ...string) string {
	t.Helper()
	return ofctl(t, "OpenFlow10", address, verb, args...)
}

// ofctl runs ovs-ofctl with a version alone, once the switch listens.
func ofctl(t *testing.T, version, address, verb string, args ...string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		out, err := exec.Command("ovs-ofctl", append([]string{"-O", version, "--timeout=20", verb, "tcp:" + address}, args...)...).CombinedOutput()
		switch {
		case err == nil:
			return string(out)
		case !strings.Contains(string(out), "refused") || time.Now().After(end):
			t.Fatalf("%s %v: %v: %s", verb, args, err, out)
		}
	}
}

// Open vSwitch's client, by OpenFlow 1.0, finds the ports, and its entries, their
// changes and their counters hold.
func TestOpenFlow10(t *testing.T) { onBoth(t, openFlow10) }

func openFlow10(t *testing.T, inKernel bool) {
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("ovs-ofctl is not installed")
	}
	far := wires(t)
	at := passive(t, inKernel)
	for _, want := range []string{"OFPT_FEATURES_REPLY (xid=", "dpid:0000000000000abc", "1(p1)", "3(p3)", "miss_send_len"} {
		if text := ofctl10(t, at, "show"); !strings.Contains(text, want) {
			t.Errorf("show has no %q:\n%s", want, text)
		}
	}
	ofctl10(t, at, "mod-flows", "in_port=1,dl_type=0x88b5,actions=set_vlan_vid:9,output:2") // which adds
	frame := frameOf(0x88, 0xb5)
	far[0].write(frame, nil)
	want := frameOf(0x81, 0, 0, 9, 0x88, 0xb5)
	want = append(want, 0, 0, 0, 0)
	if got := arrives(far[1], 5*time.Second); !bytes.Equal(got, want) {
		t.Errorf("%x came, not %x", got, want)
	}
	ofctl10(t, at, "mod-flows", "in_port=1,actions=strip_vlan,mod_nw_dst:10.0.0.1,mod_tp_src:5,output:3")
	far[0].write(want, nil)
	if got := arrives(far[2], 5*time.Second); !bytes.Equal(got, frame) {
		t.Errorf("%x came, not %x", got, frame)
	}
	flows := ofctl10(t, at, "dump-flows")
	if !strings.Contains(flows, "n_packets=2, n_bytes=164") || !strings.Contains(flows, "in_port=1,dl_type=0x88b5 actions=strip_vlan,mod_nw_dst:10.0.0.1,mod_tp_src:5,output:3") &&
		!strings.Contains(flows, `in_port=1,dl_type=0x88b5 actions=strip_vlan,mod_nw_dst:10.0.0.1,mod_tp_src:5,output:3`) {
		t.Errorf("flows:\n%s", flows)
	}
	for verb, want := range map[string]string{"dump-aggregate": "packet_count=2 byte_count=164 flow_count=1", "dump-tables": "matched=2", "dump-ports": "3 ports", "dump-desc": "Sublet", "queue-stats": "0 queues"} {
		if text := ofctl10(t, at, verb); !strings.Contains(text, want) {
			t.Errorf("%s has no %q:\n%s", verb, want, text)
		}
	}
	ofctl10(t, at, "del-flows", "in_port=1")
	if flows := ofctl10(t, at, "dump-flows"); strings.Contains(flows, "actions") {
		t.Errorf("flows:\n%s", flows)
	}
}

// A controller that knows OpenFlow 1.0 alone makes the switch learn: it is handed
// what meets no entry without having asked for it.
func TestControllerOfOpenFlow10(t *testing.T) { onBoth(t, controllerOfOpenFlow10) }

func controllerOfOpenFlow10(t *testing.T, inKernel bool) {
	if _, err := exec.LookPath("ovs-testcontroller"); err != nil {
		t.Skip("ovs-testcontroller is not installed")
	}
	far := wires(t)
	listens := unused(t)
	_, port, _ := net.SplitHostPort(listens)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "ovs-testcontroller", "-O", "OpenFlow10", "--unixctl="+dir+"/ctl", "ptcp:"+port+":127.0.0.1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	at := passive(t, inKernel, channel.Target{Address: listens})
	there, back := frameOf(0x88, 0xb5), frameOf(0x88, 0xb5)
	copy(back, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2})
	for end := time.Now().Add(20 * time.Second); !strings.Contains(ofctl10(t, at, "dump-flows"), "dl_dst=02:00:00:00:00:01"); {
		far[0].write(there, nil) // flooded, until its receiver has sent
		if arrives(far[1], 200*time.Millisecond) != nil {
			far[1].write(back, nil)
			arrives(far[0], 200*time.Millisecond)
		}
		if time.Now().After(end) {
			t.Fatal("there is no entry")
		}
	}
}

// Actions of OpenFlow 1.0 are what they were after they were kept.
func TestLooseActionsAreKept(t *testing.T) {
	m := output(3)
	actions := []of13.Action{{Type: of13.ActionPushVLAN, EtherType: 0x8100, Loose: true}, of13.Output(2), {Type: of13.ActionSetField, Field: of13.Exact(of13.TCPSrc, 5), Loose: true}}
	m.Instructions[0].Actions = actions
	b, err := of13.Append(nil, 0, m)
	if err != nil {
		t.Fatal(err)
	}
	n := len(b)
	b = appendLoose(b, m)
	_, again, err := new(of13.Decoder).Decode(b[:n])
	if err != nil {
		t.Fatal(err)
	}
	loosen(again, b[n:])
	for at, a := range actionsOf(again) {
		if a.Loose != actions[at].Loose {
			t.Errorf("action %d is loose: %v", at, a.Loose)
		}
	}
	if b := appendLoose(nil, output(3)); len(b) != 0 {
		t.Errorf("%x of an entry of 1.3", b)
	}
}
