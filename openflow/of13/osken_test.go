package of13

import (
	"encoding/hex"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// parser is a Python program that reads messages in hexadecimal digits, one on a
// line, as a switch's and a controller's, and writes again what it has read.
const parser = `
import sys
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_3
dp = ofproto_protocol.ProtocolDesc(version=ofproto_v1_3.OFP_VERSION)
for line in sys.stdin:
    b = bytes.fromhex(line.strip())
    v, t, n, xid = ofproto_parser.header(b)
    m = ofproto_parser.msg(dp, v, t, n, xid, b)
    if type(m).__name__ in ("OFPFlowMod", "OFPErrorMsg", "OFPEchoRequest", "OFPEchoReply"):
        m.serialize()
        print(t, bytes(m.buf).hex(), flush=True)
    else:
        assert n == 8 or len(str(m)) > 20
        print(t, "read", flush=True)
`

// os-ken's parser reads each message that controllers read; those that it can
// write it writes again as they were.
func TestOskenReadsMessages(t *testing.T) {
	python := "python3"
	if p := os.Getenv("OSKEN_PYTHON"); p != "" {
		python = p
	}
	if exec.Command(python, "-c", "import os_ken").Run() != nil {
		t.Skip("os-ken is not installed for " + python + "; OSKEN_PYTHON names another Python")
	}
	var list []Message
	var lines []string
	for _, m := range samples() {
		if forControllers(m) {
			leaveToOsken(m)
			list = append(list, m)
			lines = append(lines, hex.EncodeToString(encode(t, m)))
		}
	}
	cmd := exec.Command(python, "-c", parser)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(got) != len(list) {
		t.Fatalf("%d of %d messages were read: %v", len(got), len(list), err)
	}
	for i, m := range list {
		if _, again, _ := strings.Cut(got[i], " "); again != "read" && again != lines[i] {
			t.Errorf("%s\n%s\nis read and written as\n%s", printed(m), lines[i], again)
		}
	}
}

// leaveToOsken takes out of a message what os-ken reads and does not write again:
// encap with properties.
func leaveToOsken(m Message) {
	if m, ok := m.(*FlowMod); ok {
		for i, in := range m.Instructions {
			m.Instructions[i].Actions = slices.DeleteFunc(in.Actions, func(a Action) bool { return a.Type == ActionEncap && a.Packet == PacketNSH })
		}
	}
}

// forControllers says whether os-ken has a parser for a message: it has none for
// most of what controllers send.
func forControllers(m Message) bool {
	switch m.Type() {
	case TypeHello, TypeError, TypeEchoRequest, TypeEchoReply, TypeFeaturesReply, TypeGetConfigReply, TypePacketIn, TypeFlowRemoved, TypePortStatus,
		TypeMultipartReply, TypeBarrierReply, TypeQueueGetConfigReply, TypeRoleReply, TypeGetAsyncReply, TypeFlowMod:
		return true
	}
	return false
}
