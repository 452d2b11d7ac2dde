package topology

import (
	"fmt"
	"net/netip"
	"strconv"

	"sublet/vnet"
)

// counted builds a shape of a number of hosts.
func counted(n float64, build func(int) vnet.Substrate) (vnet.Substrate, error) {
	if n < 1 || n > vnet.MaxHosts {
		return vnet.Substrate{}, fmt.Errorf("%.0f is not a number of hosts from 1 to %d", n, vnet.MaxHosts)
	}
	return build(int(n)), nil
}

// demo is two hosts at the sites that the examples name, and one link of
// 2 Gbit/s called backbone. The second has a way out. In a lab that leads to a
// namespace which stands for the Internet and has no way to any other network; its
// addresses are for documentation (RFC 5737), so elsewhere it leads to nobody either.
func demo() vnet.Substrate {
	sub := hosts(2, "lyon")
	sub.Hosts[1].Site = "paris"
	join(&sub, "backbone", "h1", "h2", 2*vnet.Gbit)
	sub.NAT = []vnet.NAT{{
		Name: "internet", Host: "h2", Interface: "eth2", Via: netip.MustParseAddr("192.0.2.1"),
		Pool:     vnet.AddrRange{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.20")},
		Capacity: 100 * vnet.Mbit, Publish: vnet.PortRange{First: 8000, Last: 8999},
	}}
	return sub
}

// triangle is three hosts, each joined to both others.
func triangle() vnet.Substrate {
	sub := line(3)
	join(&sub, "h1-h3", "h1", "h3", vnet.Gbit)
	return sub
}

// line is n hosts in a row.
func line(n int) vnet.Substrate {
	sub := hosts(n, "lab")
	for i := 1; i < n; i++ {
		a, b := host(i), host(i+1)
		join(&sub, a+"-"+b, a, b, vnet.Gbit)
	}
	return sub
}

// star is n hosts around one switch.
func star(n int) vnet.Substrate {
	sub := hosts(n, "lab")
	sub.Switches = []string{"s1"}
	for i := 1; i <= n; i++ {
		join(&sub, host(i)+"-s1", host(i), "s1", vnet.Gbit)
	}
	return sub
}

func host(i int) string { return "h" + strconv.Itoa(i) }

// hosts have what they may book: in a lab the machine underneath is shared by all.
func hosts(n int, site string) vnet.Substrate {
	sub := vnet.Substrate{Hosts: make([]vnet.SubstrateNode, 0, n)}
	for i := 1; i <= n; i++ {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(host(i)), Site: site, CPU: 4 * vnet.Core, Memory: 4 * vnet.GiB})
	}
	return sub
}

func join(sub *vnet.Substrate, name, a, b string, capacity vnet.Rate) {
	sub.Links = append(sub.Links, vnet.SubstrateLink{Name: name, Ends: [2]string{a, b}, Capacity: capacity})
}
