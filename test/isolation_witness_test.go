package test

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sublet/plan"
)

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
			silent = append(silent, tap(l.t, l.host(node), c.name()+"'s frames on "+node+" outside of their tunnel", outside(c.uid, c.trunkOn(node), c.vni("h1"))))
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

// quiet are the stacks' counters when a second adds nothing: a host may be asked for the
// time by another one before it listens.
func (l *lab) quiet(both []*tenant) (counters map[string]map[string]uint64) {
	eventually(l.t, 10*time.Second, func() error {
		before := l.stacks(both)
		time.Sleep(1100 * time.Millisecond)
		if counters = l.stacks(both); !reflect.DeepEqual(before, counters) {
			return errors.New("IP stacks received something before the flood")
		}
		return nil
	})
	return counters
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
func (c *tenant) vni(host string) uint32 { return c.vnis(host)[0] }

// vnis are the identifiers of all of them.
func (c *tenant) vnis(host string) (list []uint32) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.run, "agent", "plan-"+host+".json"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, link := range plan.Of[plan.VxLink](decode[plan.Host](c.t, string(text))) {
		for _, end := range link.Ends {
			if string(link.Lease.Tenant) == c.name() && end.Tunnel != nil {
				list = append(list, uint32(end.Tunnel.VNI))
			}
		}
	}
	if len(list) == 0 {
		c.t.Fatalf("%s has no tunnel on %s", c.name(), host)
	}
	return list
}
