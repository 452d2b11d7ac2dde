package topology

import (
	"fmt"

	"sublet/vnet"
)

// maxPorts of a fat-tree's switches: beyond it hosts exceed vnet.MaxHosts.
const maxPorts = 56

// FatTree is the k-ary fat-tree of Al-Fares et al. (SIGCOMM 2008): k pods of
// k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k/2 hosts at
// each edge switch, k^3/4 in all. A pod is a site.
func FatTree(k int) (vnet.Substrate, error) {
	if k < 2 || k > maxPorts || k%2 != 0 {
		return vnet.Substrate{}, fmt.Errorf("%d is not an even number of ports from 2 to %d", k, maxPorts)
	}
	half := k / 2
	sub := hosts(k*half*half, "")
	for core := range half * half {
		sub.Switches = append(sub.Switches, fmt.Sprintf("c%d", core+1))
	}
	for pod := range k {
		for i := range half {
			sub.Switches = append(sub.Switches, aggregation(pod, i), edge(pod, i))
		}
	}
	for pod := range k {
		joinPod(&sub, pod, half)
	}
	return sub, nil
}

func aggregation(pod, i int) string { return fmt.Sprintf("a%d-%d", pod+1, i+1) }
func edge(pod, i int) string        { return fmt.Sprintf("e%d-%d", pod+1, i+1) }

// joinPod wires one pod: hosts to edges, edges to all aggregation switches of
// the pod, and aggregation switch i to the cores of its column.
func joinPod(sub *vnet.Substrate, pod, half int) {
	for e := range half {
		for i := range half {
			n := (pod*half+e)*half + i
			sub.Hosts[n].Site = fmt.Sprintf("pod%d", pod+1)
			join(sub, "", host(n+1), edge(pod, e), vnet.Gbit)
		}
		for a := range half {
			join(sub, "", edge(pod, e), aggregation(pod, a), vnet.Gbit)
		}
	}
	for a := range half {
		for i := range half {
			join(sub, "", aggregation(pod, a), fmt.Sprintf("c%d", a*half+i+1), vnet.Gbit)
		}
	}
}
