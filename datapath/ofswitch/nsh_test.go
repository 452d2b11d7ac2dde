package ofswitch

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Open vSwitch's client makes the switch classify packets into a service path, steer them
// along it and take them out of it.
func TestServicePath(t *testing.T) { onBoth(t, servicePath) }

func servicePath(t *testing.T, inKernel bool) {
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("ovs-ofctl is not installed")
	}
	far := wires(t)
	at := passive(t, inKernel)
	do := func(verb string, args ...string) string { t.Helper(); return ofctl(t, "OpenFlow13", at, verb, args...) }
	entries := []string{
		"in_port=1,dl_type=0x88b5,actions=encap(nsh(md_type=1)),set_field:0x1234->nsh_spi,set_field:250->nsh_si,set_field:0x7->nsh_c2,encap(ethernet),set_field:02:00:00:00:00:99->eth_dst,output:2",
		"in_port=2,dl_type=0x894f,nsh_spi=0x1234,nsh_si=249,nsh_c2=0x7/0xf,actions=dec_nsh_ttl,set_field:0x99->nsh_spi,output:3",
		"in_port=3,dl_type=0x894f,nsh_spi=0x99,actions=decap(),decap(),output:1",
	}
	for _, e := range entries {
		do("add-flow", e)
	}
	dump := do("dump-flows")
	for _, want := range []string{"nsh_spi=0x1234", "nsh_si=249", "encap(nsh(md_type=1))", "encap(ethernet)", "decap(),decap()", "dec_nsh_ttl", "set_field:0x99->nsh_spi"} {
		if !strings.Contains(dump, want) {
			t.Errorf("flows have no %s:\n%s", want, dump)
		}
	}
	inner := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, bytes.Repeat([]byte{0xab}, 50)...)
	header := []byte{0x0f, 0xc6, 1, 3, 0, 0x12, 0x34, 250, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0}
	outer := []byte{2, 0, 0, 0, 0, 0x99, 0, 0, 0, 0, 0, 0, 0x89, 0x4f}
	frame := func() []byte { return bytes.Join([][]byte{outer, header, inner}, nil) }
	passes := func(from, to int, sent, want []byte) {
		t.Helper()
		for range 3 { // of which the kernel forwards some by itself
			far[from-1].write(sent, nil)
			if got := arrives(far[to-1], 10*time.Second); !bytes.Equal(got, want) {
				t.Fatalf("%x\ncame from port %d at port %d, not\n%x", got, from, to, want)
			}
			do("dump-flows") // which waits for the flow
		}
	}
	passes(1, 2, inner, frame())
	header[7] = 249
	sent := frame()
	header[0], header[1] = 0x0f, 0x86
	header[5], header[6] = 0, 0x99
	passes(2, 3, sent, frame())
	passes(3, 1, frame(), inner)
	header[5], header[6] = 0x12, 0x34
	for _, other := range [][2]byte{{248, 7}, {249, 8}} { // index and context that no entry has
		header[7], header[15] = other[0], other[1]
		far[1].write(frame(), nil)
		if got := arrives(far[2], 200*time.Millisecond); got != nil {
			t.Errorf("index and context %v came through: %x", other, got)
		}
	}
	if text := do("dump-flows", "nsh_spi=0x1234,dl_type=0x894f"); !strings.Contains(text, "n_packets=3") {
		t.Errorf("statistics:\n%s", text)
	}
}
