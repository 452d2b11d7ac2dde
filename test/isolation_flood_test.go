package test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/plan"
)

// twins is the network that both tenants ask for, to the last address: a on
// h1 has one link to b on h2 and one to c beside it.
const twins = `network: net
nodes:
  - {name: a, host: h1, address: 10.9.0.1}
  - {name: b, host: h2, address: 10.9.0.2}
  - {name: c, host: h1, address: 10.9.0.3}
links:
  - {ends: [a, b], max: 800Mbit}
  - {ends: [a, c], max: 800Mbit}
`

var places = map[string]string{"a": "h1", "b": "h2", "c": "h1"}

const threeHosts = `hosts:
  - {name: h1, site: lab, cpu: 4, memory: 4GiB}
  - {name: h2, site: lab, cpu: 4, memory: 4GiB}
  - {name: h3, site: lab, cpu: 4, memory: 4GiB}
switches: [s1]
links:
  - {ends: [h1, s1], capacity: 2Gbit}
  - {ends: [h2, s1], capacity: 2Gbit}
  - {ends: [h3, s1], capacity: 2Gbit}
`

// floodInside sends a plan's frames as fast as it can.
func floodInside(args []string) error {
	var p floodPlan
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	device, err := net.InterfaceByName(p.Device)
	if err != nil {
		return err
	}
	copy(p.Own[:], device.HardwareAddr)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: device.Index}); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(p.Own[5]), 1))
	frames := make([][]byte, 16384)
	for i := range frames {
		frames[i] = p.forge(r)
	}
	sent := 0
	for i := range p.Frames {
		if _, err := unix.Write(fd, frames[i%len(frames)]); err == nil {
			sent++
		}
	}
	fmt.Println(sent)
	return nil
}

// One in two frames at least must arrive where it may, or the test is void.
const floodFrames = 250_000 // per tenant and link

// Two tenants have networks that are equal in every name and address, on the
// same hosts. Both send a million frames between them to everybody's
// addresses, with tags, tunnels, lies and fragments of all kinds. Each link's
// other end gets what was sent by it; nobody else sees a single frame: no node
// of the other tenant, no other node of the same, no fabric of the other, no
// host, no switch, nor the machine; and no IP stack outside the nodes receives
// one.
func TestTwinsShareNothing(t *testing.T) {
	l := newLab(t, threeHosts)
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(twins)
	}
	for _, c := range both {
		if r := c.shell("net/a", "ping -qc1 -W2 b && ping -qc1 -W2 c"); r.code != 0 {
			t.Fatalf("%s: own peers do not answer: %s%s", c.name(), r.out, r.err)
		}
	}
	silent, arrive := l.wiretaps(both)
	// That silence is no deafness: taken for another network's, the frames
	// are heard below the tunnel.
	arrive = append(arrive, tap(t, l.host("h2"), "control on h2", outside(alice, both[0].vni("h1")+1)))
	frames := floodFrames
	if testing.Short() {
		frames /= 10
	}
	before := l.stacks(both)
	var senders sync.WaitGroup
	for i, c := range both {
		p := l.targets(both, both[1-i])
		p.Frames = frames
		for link := range 2 {
			p.Device, p.Signature = fmt.Sprintf("eth%d", link), signed(c.uid, byte(link))
			text, _ := json.Marshal(p)
			senders.Go(func() {
				if r := c.attack("net/a", "flood", string(text)); r.code != 0 || strings.TrimSpace(r.out) == "0" {
					t.Errorf("%s: flood by eth%d: %s%s", c.name(), link, r.out, r.err)
				}
			})
		}
	}
	senders.Wait()
	for _, w := range silent {
		w.silent()
	}
	for _, w := range arrive {
		n := w.count()
		t.Logf("%s: %d of %d frames", w.what, n, frames)
		if int(n) < frames/2 {
			t.Errorf("%s: only %d of %d frames: the test shows nothing", w.what, n, frames)
		}
	}
	for where, now := range l.stacks(both) {
		for name, value := range now {
			if value != before[where][name] {
				t.Errorf("%s: %s grew from %d to %d", where, name, before[where][name], value)
			}
		}
	}
	for _, c := range both {
		for node := range places { // each has poisoned his own network with false ARP
			c.must("exec", "net/"+node, "--", "ip", "neighbour", "flush", "all")
		}
		if r := c.shell("net/a", "ping -qc1 -W2 b && ping -qc1 -W2 c"); r.code != 0 {
			t.Errorf("%s: own peers do not answer after the floods: %s%s", c.name(), r.out, r.err)
		}
	}
	l.settled()
}

// wiretaps listens wherever a flood's frames could come out: silent are those
// that must hear none, arrive those of the links' proper ends.
func (l *lab) wiretaps(both []*tenant) (silent, arrive []*wiretap) {
	for i, c := range both {
		other := both[1-i]
		for link, node := range map[byte]string{0: "b", 1: "c"} {
			file := c.node(places[node], "net", node)
			arrive = append(arrive, tap(l.t, file, c.name()+"/"+node, exactly(signed(c.uid, link))))
			silent = append(silent, tap(l.t, file, "others' frames at "+c.name()+"/"+node, anyBut(signed(c.uid, link))))
		}
		silent = append(silent, tap(l.t, c.node("h1", "net", "a"), "the other's frames at "+c.name()+"/a", from(other.uid)))
		for _, host := range []string{"h1", "h2"} {
			silent = append(silent, tap(l.t, c.fabric(host, "net"), "the other's frames in "+c.name()+"'s fabric on "+host, from(other.uid)))
		}
		for _, node := range []string{"h1", "h2", "h3", "s1"} {
			silent = append(silent, tap(l.t, l.host(node), c.name()+"'s frames on "+node+" outside of their tunnel", outside(c.uid, c.vni("h1"))))
		}
	}
	return append(silent, tap(l.t, here, "frames on the machine", anything())), arrive
}

// from counts frames with any of a tenant's signatures.
func from(uid uint32) []unix.SockFilter {
	return []unix.SockFilter{
		loadLength,
		loadTail(8), jumpEqual(binary.BigEndian.Uint32([]byte("SLis")), 0, 4),
		loadTail(4), shift(16), jumpEqual(uid, 0, 1),
		doCount, dontCount,
	}
}

// stacks are counters of the IP stacks that frames of a flood might enter:
// those of hosts that outer packets do not move, all of the fabrics'.
func (l *lab) stacks(both []*tenant) map[string]map[string]uint64 {
	all := map[string]map[string]uint64{}
	for _, host := range []string{"h1", "h2", "h3"} {
		now := snmp(l.t, l.host(host))
		all[host] = map[string]uint64{}
		for _, name := range []string{
			"Ip.ForwDatagrams", "Ip.InHdrErrors", "Ip.InAddrErrors", "Ip.InUnknownProtos", "Ip.ReasmReqds", "Ip.OutNoRoutes",
			"Icmp.InMsgs", "Icmp.OutMsgs", "Tcp.InSegs", "Udp.NoPorts", "Udp.InErrors",
		} {
			all[host][name] = now[name]
		}
	}
	for _, c := range both {
		for _, host := range []string{"h1", "h2"} {
			all[c.name()+"'s fabric on "+host] = snmp(l.t, c.fabric(host, "net"))
		}
	}
	return all
}

// targets are the addresses of everything there is.
func (l *lab) targets(both []*tenant, other *tenant) floodPlan {
	p := floodPlan{VNIs: []uint32{other.vni("h1")}, IPs: [][4]byte{{127, 0, 0, 1}, {}, {255, 255, 255, 255}, {224, 0, 0, 5}}}
	spaces := []string{l.host("h1"), l.host("h2"), l.host("h3"), l.host("s1"), here}
	for _, c := range both {
		for node, host := range places {
			spaces = append(spaces, c.node(host, "net", node))
		}
		spaces = append(spaces, c.fabric("h1", "net"), c.fabric("h2", "net"))
	}
	for _, space := range spaces {
		within(l.t, space, func() error { return p.learn() })
	}
	return p
}

// learn adds the addresses of the calling thread's namespace.
func (p *floodPlan) learn() error {
	devices, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, d := range devices {
		if mac := [6]byte(append(d.HardwareAddr, make([]byte, 6)...)); len(d.HardwareAddr) == 6 && !slices.Contains(p.MACs, mac) {
			p.MACs = append(p.MACs, mac)
		}
		addresses, err := d.Addrs()
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if ip := a.(*net.IPNet).IP.To4(); ip != nil && !slices.Contains(p.IPs, [4]byte(ip)) {
				p.IPs = append(p.IPs, [4]byte(ip))
			}
		}
	}
	return nil
}

// vni is the identifier of the tenant's first tunnel on a host.
func (c *tenant) vni(host string) uint32 {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.run, "agent", "plan-"+host+".json"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, link := range decode[plan.Host](c.t, string(text)).Links {
		for _, end := range link.Ends {
			if string(link.Lease.Tenant) == c.name() && end.Tunnel != nil {
				return uint32(end.Tunnel.VNI)
			}
		}
	}
	c.t.Fatalf("%s has no tunnel on %s", c.name(), host)
	return 0
}
