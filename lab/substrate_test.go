package lab

import (
	"fmt"

	"sublet/vnet"
)

// demo is two hosts and one link of 2 Gbit/s.
func demo() vnet.Substrate {
	sub := hosts(2)
	join(&sub, "backbone", "h1", "h2", 2*vnet.Gbit)
	return sub
}

// star is n hosts around one switch.
func star(n int) vnet.Substrate {
	sub := hosts(n)
	sub.Switches = []string{"s1"}
	for _, h := range sub.Hosts {
		join(&sub, string(h.Name)+"-s1", string(h.Name), "s1", vnet.Gbit)
	}
	return sub
}

func hosts(n int) vnet.Substrate {
	var sub vnet.Substrate
	for i := 1; i <= n; i++ {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(fmt.Sprintf("h%d", i)), Site: "lab", CPU: 4 * vnet.Core, Memory: 4 * vnet.GiB})
	}
	return sub
}

func join(sub *vnet.Substrate, name, a, b string, capacity vnet.Rate) {
	sub.Links = append(sub.Links, vnet.SubstrateLink{Name: name, Ends: [2]string{a, b}, Capacity: capacity})
}
