package lab

import (
	"fmt"
	"strconv"
	"strings"

	"sublet/vnet"
)

// maxHosts of a substrate made by name: each runs an agent.
const maxHosts = 200

// Names describes the substrates that Named makes.
var Names = []string{"demo", "one", "triangle", "line:N", "star:N"}

// Named makes a substrate by name: "demo" (two hosts, one link of 2 Gbit/s
// called backbone), "one" (a single host), "triangle" (three hosts, each
// joined to both others), "line:N" (N hosts in a row) or "star:N" (N hosts
// around one switch). Links other than the backbone carry 1 Gbit/s. False: it
// is not such a name, but perhaps a file's.
func Named(name string) (vnet.Substrate, bool, error) {
	shape, number, counted := strings.Cut(name, ":")
	build, known := map[string]func(int) vnet.Substrate{
		"demo": demo, "one": line, "triangle": triangle, "line:": line, "star:": star,
	}[shape+map[bool]string{true: ":"}[counted]]
	if !known {
		return vnet.Substrate{}, false, nil
	}
	if !counted {
		return build(1), true, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxHosts {
		return vnet.Substrate{}, true, fmt.Errorf("lab %s: %q is not a number of hosts from 1 to %d", name, number, maxHosts)
	}
	return build(n), true, nil
}

func demo(int) vnet.Substrate {
	sub := hosts(2)
	join(&sub, "backbone", "h1", "h2", 2*vnet.Gbit)
	return sub
}

func triangle(int) vnet.Substrate {
	sub := line(3)
	join(&sub, "h1-h3", "h1", "h3", vnet.Gbit)
	return sub
}

func line(n int) vnet.Substrate {
	sub := hosts(n)
	for i := 1; i < n; i++ {
		a, b := host(i), host(i+1)
		join(&sub, a+"-"+b, a, b, vnet.Gbit)
	}
	return sub
}

func star(n int) vnet.Substrate {
	sub := hosts(n)
	sub.Switches = []string{"s1"}
	for i := 1; i <= n; i++ {
		join(&sub, host(i)+"-s1", host(i), "s1", vnet.Gbit)
	}
	return sub
}

func host(i int) string { return "h" + strconv.Itoa(i) }

// hosts have what they may book: the machine underneath is shared by all.
func hosts(n int) vnet.Substrate {
	var sub vnet.Substrate
	for i := 1; i <= n; i++ {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(host(i)), Site: "lab", CPU: 4 * vnet.Core, Memory: 4 * vnet.GiB})
	}
	return sub
}

func join(sub *vnet.Substrate, name, a, b string, capacity vnet.Rate) {
	sub.Links = append(sub.Links, vnet.SubstrateLink{Name: name, Ends: [2]string{a, b}, Capacity: capacity})
}
