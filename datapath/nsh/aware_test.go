package nsh

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// aware is a function that knows NSH: it tells the path, index and metadata of what comes
// by i0, and returns it by o0 as its argument says: right, with the index one lower, or
// in one of several wrong ways.
const aware = `
import socket, struct, sys
i = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x894f)); i.bind(("i0", 0x894f))
o = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); o.bind(("o0", 0))
print("ready", flush=True)
while True:
    f = bytearray(i.recv(65536)); base, at = struct.unpack("!II", f[14:22]); length = (base >> 16 & 63) * 4
    print(at >> 8, at & 255, base >> 8 & 15, f[22:14 + length].hex() or "-", flush=True)
    how = sys.argv[1]
    at -= how != "index"
    if how == "below": at -= 1
    if how == "path": at ^= 1 << 20
    if how == "version": base |= 1 << 30
    f[14:22] = struct.pack("!II", base, at)
    if how == "short": f = f[:20]
    o.send(f[14 + length:] if how == "bare" else f)`

// A function that knows NSH gets packets with the header, path, index and metadata, and
// what it returns with the next index goes on. What it returns on another path, with
// another index or malformed is dropped and counted.
func TestFunctionThatKnowsNSH(t *testing.T) {
	described := map[string]Metadata{"right": {there, 1, []byte("sixteen bytes ab")}, "typed": {there, 2, typedMetadata}}
	for how, cause := range map[string]string{
		"right": "", "typed": "", "index": "wrong-index", "below": "wrong-index", "path": "unknown-path", "version": "malformed", "short": "malformed", "bare": "unknown-flow",
	} {
		t.Run(how, func(t *testing.T) {
			g := newGround(t)
			p1, p2 := g.planes(Function{Name: "ids", Kind: Aware, In: "fi0", Out: "fo0"}, Function{Name: "nothing", Kind: None})
			metadata, ok := described[how]
			if ok {
				p1.Metadata = []Metadata{metadata}
			}
			p1, p2 = backBeside(p1, p2)
			g.set(p1, p2)
			cmd := exec.Command("nsenter", "--net="+g.f, "python3", "-c", aware, how)
			out, err := cmd.StdoutPipe()
			check(t, err)
			check(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			lines := bufio.NewScanner(out)
			if !lines.Scan() || lines.Text() != "ready" {
				t.Fatalf("the function says %q", lines.Text())
			}
			if cause != "" {
				eventually(t, cause, func() bool {
					if g.pings(g.a, "192.168.7.2") {
						t.Fatal("what is returned in a wrong way arrives")
					}
					hop := g.h2.hop(t, there, 254)
					return hop.Drops[cause] >= 3 && hop.Packets >= 3
				})
				return
			}
			for _, to := range [][]string{{"192.168.7.2"}, {"192.168.7.2", "-s", "1400"}, {"fd00:7::2"}} {
				if !g.pings(g.a, to[0], to[1:]...) {
					t.Errorf("no answer of %s: h1 %+v, h2 %+v", to, g.report(g.h1), g.report(g.h2))
				}
			}
			if again, err := g.h2.part.Planes(); err != nil || len(again) != 1 || len(again[0].Hops) != len(p2.Hops) {
				t.Errorf("read back as %+v, %v", again, err)
			}
			if c := g.h2.hop(t, there, 254); c.Returned < 3 {
				t.Errorf("%+v", c)
			}
			if !lines.Scan() {
				t.Fatal("the function got nothing")
			}
			if got, want := lines.Text(), fmt.Sprintf("458753 254 %d %x", metadata.Type, metadata.Bytes); got != want {
				t.Errorf("the function read %q, not %q", got, want)
			}
		})
	}
}

// Large segments with checksums that are not finished pass a function that knows NSH, in
// its kernel.
func TestSegmentsPassFunctionsThatKnowNSH(t *testing.T) {
	g := newGround(t)
	g.returnsNext(g.f, 253)
	p1, p2 := g.planes(Function{Name: "ids", Kind: Aware, In: "fi0", Out: "fo0"}, Function{Name: "nothing", Kind: None})
	p1, p2 = backBeside(p1, p2)
	g.set(p1, p2)
	for _, to := range []string{"192.168.7.2", "fd00:7::2"} {
		family := map[bool]string{true: "socket.AF_INET6", false: "socket.AF_INET"}[strings.Contains(to, ":")]
		server := exec.Command("nsenter", "--net="+g.b, "python3", "-c", "import socket, sys\ns = socket.create_server(('"+to+"', 80), family="+family+"); print(flush=True)\n"+
			"c, _ = s.accept(); n = 0\nwhile b := c.recv(65536): n += len(b)\nprint(n)")
		out, err := server.StdoutPipe()
		check(t, err)
		check(t, server.Start())
		t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
		lines := bufio.NewScanner(out)
		lines.Scan()
		g.in(g.a, "timeout 20 python3 -c \"import socket; s = socket.create_connection(('"+to+"', 80), timeout=10); s.sendall(bytes(3000000))\"")
		if !lines.Scan() || lines.Text() != "3000000" {
			t.Errorf("%s got %q bytes: h2 %+v", to, lines.Text(), g.report(g.h2))
		}
	}
	if c := g.h2.hop(t, there, 254); c.Returned < 4000 {
		t.Errorf("the function returned %d packets of 6000000 bytes", c.Returned)
	}
}

// returnsNext has a namespace send frames that come by i0 out by o0, with an index that is
// the same for all.
func (g *testGround) returnsNext(namespace string, next int32) {
	g.t.Helper()
	g.between(namespace, func(in, out int) error {
		const indexAt = 14 + 7
		return g.redirect(in, out,
			asm.StoreImm(asm.RFP, -8, int64(next), asm.Byte), asm.Mov.Imm(asm.R2, indexAt), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8),
			asm.Mov.Imm(asm.R4, 1), asm.Mov.Imm(asm.R5, 0), asm.FnSkbStoreBytes.Call())
	})
}

// backBeside leads what comes back past the functions.
func backBeside(p1, p2 Plane) (Plane, Plane) {
	p2.Hops = append(p2.Hops[:3:3], Hop{Path: back, Index: 255, Function: "nothing"}, Hop{Path: back, Index: 254, Remote: "h1"})
	p1.Hops[2] = Hop{Path: back, Index: 254, Egress: &Egress{Port: "la0"}}
	return p1, p2
}
