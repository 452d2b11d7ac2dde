package test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"sublet/report"
	"sublet/vnet"
)

// threeWays has links of each encapsulation that leases can have.
func threeWays(ab, bc, ca vnet.Encapsulation) string {
	text := "hosts: [{name: h1, cpu: 2, memory: 2GiB}, {name: h2, cpu: 2, memory: 2GiB}, {name: h3, cpu: 2, memory: 2GiB}]\nlinks:\n"
	for _, l := range []struct {
		ends string
		by   vnet.Encapsulation
	}{{"h1, h2", ab}, {"h2, h3", bc}, {"h3, h1", ca}} {
		text += fmt.Sprintf("  - {ends: [%s], capacity: 100Mbit, encapsulation: %s}\n", l.ends, l.by)
	}
	return text
}

// overThreeWays has a link over each link of threeWays.
const overThreeWays = `network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h3}]
links:
  - {ends: [a, b], rate: 20Mbit}
  - {ends: [b, c], rate: 20Mbit}
  - {ends: [c, a], rate: 20Mbit}
`

// TestEncapsulations: links of leases go by the encapsulation of their substrate links,
// at both ends, at their rates and no more, as an analyser reads it; and by another one
// when the substrate changes.
func TestEncapsulations(t *testing.T) {
	l := newLab(t, threeWays(vnet.VXLAN, vnet.Geneve, vnet.NVGRE))
	l.up(overThreeWays)
	l.goesBy(map[string]vnet.Encapsulation{"a-b": "", "b-c": vnet.Geneve, "c-a": vnet.NVGRE})
	for _, c := range []struct{ host, device, peer, layers string }{
		{"h1", "to-h2", "b", "eth:ethertype:ip:udp:vxlan:eth:ethertype:ip:icmp:data"},
		{"h2", "to-h3", "c", "eth:ethertype:ip:udp:geneve:eth:ethertype:ip:icmp:data"},
		{"h1", "to-h3", "c", "eth:ethertype:ip:gre:eth:ethertype:ip:icmp:data"},
	} {
		node := map[string]string{"h1": "a", "h2": "b"}[c.host]
		read := l.reads(c.host, c.device)
		l.must("exec", "n/"+node, "--", "ping", "-q", "-c", "10", "-i", "0.05", "-s", "1000", c.peer)
		read(c.layers)
	}
	l.checked("n", broken)
	l.must("overlay", "trace", "n", "c", "a")

	text := l.must("substrate", "get")
	turned := strings.NewReplacer("vxlan", "nvgre", "geneve", "vxlan", "nvgre", "geneve").Replace(text)
	l.must("substrate", "apply", l.file("other.yaml", turned))
	eventually(t, time.Minute, func() error {
		return l.by(map[string]vnet.Encapsulation{"a-b": vnet.NVGRE, "b-c": "", "c-a": vnet.Geneve})
	})
	for _, way := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
		l.must("exec", "n/"+way[0], "--", "ping", "-q", "-c", "3", "-i", "0.05", "-w", "20", way[1])
	}
	l.must("down", "n")
}

// TestEncapsulationsThatDoNotFit: they are refused in one line, and nothing is made.
func TestEncapsulationsThatDoNotFit(t *testing.T) {
	t.Parallel()
	l := &lab{t: t, run: shortDir(t)}
	for text, want := range map[string]string{
		threeWays("gretap", "vxlan", "vxlan"): `links[0].encapsulation: leases cannot have gretap, since it has no number that tells leases apart: choose vxlan, geneve, nvgre, kernel-vxlan`,
		threeWays("ipip", "vxlan", "vxlan"):   `it carries IP packets only`,
		threeWays("genve", "vxlan", "vxlan"):  `"genve" is no encapsulation: choose vxlan, geneve, nvgre, kernel-vxlan`,
	} {
		r := l.sublet("lab", "up", "--name", labName(l.run), l.file("substrate.yaml", text))
		if r.code != 2 || !strings.Contains(r.err, want) || strings.Count(r.err, "\n") > 1 {
			t.Errorf("%d: %s\nwant %s", r.code, r.err, want)
		}
	}
}

// TestTunnelsByTheHostsStack: links of leases go by the stack of their hosts where the
// substrate says so, at their rates, and only those meet the operator's firewall.
func TestTunnelsByTheHostsStack(t *testing.T) {
	l := newLab(t, threeWays(vnet.KernelVXLAN, vnet.VXLAN, vnet.KernelVXLAN))
	l.up(overThreeWays)
	l.goesBy(map[string]vnet.Encapsulation{"a-b": vnet.KernelVXLAN, "b-c": "", "c-a": vnet.KernelVXLAN})
	l.checked("n", broken)
	passes := func(from, to string, wanted bool) {
		t.Helper()
		if err := l.pinged("n", from, to); (err == nil) != wanted {
			t.Errorf("from %s to %s, wanted to come back: %t: %v", from, to, wanted, err)
		}
	}
	passes("a", "b", true)
	lift := l.silenced("h2")
	passes("a", "b", false)
	passes("b", "c", true)
	passes("c", "a", true)
	lift()
	passes("a", "b", true)
	l.must("down", "n")
}

// silenced has a host's stack send no datagrams, until what it returns is called.
func (l *lab) silenced(host string) (lift func()) {
	l.t.Helper()
	table := &nftables.Table{Name: "operator", Family: nftables.TableFamilyINet}
	change := func(do func(*nftables.Conn)) {
		l.t.Helper()
		within(l.t, l.host(host), func() error {
			c, err := nftables.New()
			if err != nil {
				return err
			}
			do(c)
			return c.Flush()
		})
	}
	change(func(c *nftables.Conn) {
		c.AddTable(table)
		chain := c.AddChain(&nftables.Chain{Name: "c", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	})
	return func() { change(func(c *nftables.Conn) { c.DelTable(table) }) }
}

// goesBy wants the tunnels of links, at both ends, to have these encapsulations.
func (l *lab) goesBy(want map[string]vnet.Encapsulation) {
	l.t.Helper()
	if err := l.by(want); err != nil {
		l.t.Error(err)
	}
}

func (l *lab) by(want map[string]vnet.Encapsulation) error {
	ends := make(map[string]int)
	for _, s := range decode[[]report.TunnelState](l.t, l.must("overlay", "-o", "json")) {
		if s.State == report.TunnelNone {
			continue
		}
		if by, known := want[s.Link]; !known || by != s.Protocol || s.State != report.TunnelValid {
			return fmt.Errorf("%s at %s goes by %q and is %s, want %q", s.Link, s.Host, s.Protocol, s.State, by)
		}
		ends[s.Link]++
	}
	for link := range want {
		if ends[link] != 2 {
			return fmt.Errorf("%s has %d ends", link, ends[link])
		}
	}
	return nil
}

// reads captures what leaves a host by a device and is as long as echo requests of 1000
// bytes. What it returns wants tshark to find these protocols in it, and nothing wrong.
func (l *lab) reads(host, device string) func(layers string) {
	l.t.Helper()
	const packets = 5
	capture := dumped(l.t, l.host(host), "-i", device, "-Q", "out", "-c", fmt.Sprint(packets), "greater 1050")
	return func(layers string) {
		l.t.Helper()
		file := capture()
		if file == "" {
			return
		}
		out, err := exec.Command("tshark", "-r", file, "-T", "fields", "-E", "separator=;", "-e", "frame.protocols", "-e", "_ws.malformed").Output()
		if want := strings.Repeat(layers+";\n", packets); err != nil || string(out) != want {
			l.t.Errorf("tshark says %v:\n%s\nwant\n%s", err, out, want)
		}
	}
}

// dumped begins to listen with tcpdump in a namespace, for so many packets. What it
// returns waits for them and is the file that has them; "": a program is missing.
func dumped(t *testing.T, namespace string, args ...string) func() string {
	t.Helper()
	for _, program := range []string{"tshark", "tcpdump"} {
		if _, err := exec.LookPath(program); err != nil {
			return func() string { return "" }
		}
	}
	capture := filepath.Join(t.TempDir(), "wire.pcap")
	dump := exec.Command("nsenter", append([]string{"--net=" + namespace, "tcpdump", "--immediate-mode", "-U", "-w", capture}, args...)...)
	said, err := dump.StderrPipe()
	need(t, err)
	need(t, dump.Start())
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening on") {
	}
	go io.Copy(io.Discard, said)
	done := make(chan error, 1)
	go func() { done <- dump.Wait() }()
	t.Cleanup(func() { dump.Process.Kill() })
	return func() string {
		t.Helper()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("no packets for tcpdump %v", args)
		}
		return capture
	}
}
