package topology

import (
	"fmt"

	"sublet/vnet"
)

// Serve makes every host of a substrate a switch with n hosts of its own, such
// as the nodes of a GraphML file, which are points of presence. Host i of
// switch NAME is NAME-hI, with what the host had; its link is as fast as the
// fastest of the switch's.
func Serve(sub vnet.Substrate, n int) (vnet.Substrate, error) {
	if n < 1 || n > 1024 || n*len(sub.Hosts) > vnet.MaxHosts {
		return vnet.Substrate{}, fmt.Errorf("%d hosts at each of %d switches: choose 1 to %d", n, len(sub.Hosts), min(1024, vnet.MaxHosts/max(len(sub.Hosts), 1)))
	}
	served := sub
	served.Hosts = nil
	served.Switches = append([]string(nil), sub.Switches...)
	served.Links = append([]vnet.SubstrateLink(nil), sub.Links...)
	for _, h := range sub.Hosts {
		at := string(h.Name)
		served.Switches = append(served.Switches, at)
		for i := range n {
			own := h
			own.Name = vnet.HostID(fmt.Sprintf("%s-h%d", at, i+1))
			served.Hosts = append(served.Hosts, own)
			join(&served, "", string(own.Name), at, fastest(sub, at))
		}
	}
	served.Fill()
	return served, served.Check()
}

// fastest capacity of a node's links.
func fastest(sub vnet.Substrate, node string) vnet.Rate {
	most := vnet.Rate(0)
	for _, l := range sub.Links {
		if l.Ends[0] == node || l.Ends[1] == node {
			most = max(most, l.Capacity)
		}
	}
	if most == 0 {
		return vnet.Gbit
	}
	return most
}
