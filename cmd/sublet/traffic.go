package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"sublet/plan"
	"sublet/vnet"
)

// trafficView is what passed one direction of a virtual link since it was
// built: frames as on a wire, each segment of a large packet one.
type trafficView struct {
	Packets          uint64            `json:"packets"` // entered the link
	Bytes            uint64            `json:"bytes"`
	DeliveredPackets uint64            `json:"delivered_packets"` // left it
	DeliveredBytes   uint64            `json:"delivered_bytes"`
	Drops            map[string]uint64 `json:"drops"` // by cause
}

// traffic asks the hosts of a lease's nodes for its counters, by link and
// direction. Hosts that do not answer are left out: the rest is worth showing.
func (a *app) traffic(ctx context.Context, l vnet.Lease) map[string][2]*trafficView {
	if l.State != vnet.Running {
		return nil
	}
	links := make(map[string][2]*trafficView)
	hosts := slices.Collect(maps.Values(l.Mapping.Nodes))
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		list, err := a.client().Traffic(ctx, l.ID(), host)
		if err != nil {
			fmt.Fprintf(a.err, "no counters from %s: %v\n", host, err)
			continue
		}
		for _, t := range list {
			both := links[t.Link]
			if both[t.Direction] == nil {
				both[t.Direction] = &trafficView{Drops: make(map[string]uint64)}
				links[t.Link] = both
			}
			both[t.Direction].add(t)
		}
	}
	return links
}

// add takes in what one host says.
func (v *trafficView) add(t plan.Traffic) {
	for cause, n := range t.Drops {
		v.Drops[cause] += n
	}
	if t.First {
		v.Packets, v.Bytes = t.Packets, t.Bytes
	}
	if t.Last { // there is one for each path of a link
		v.DeliveredPackets += t.Packets
		v.DeliveredBytes += t.Bytes
	}
	if t.First && t.Last { // both ends here: what its queue dropped did not arrive
		v.DeliveredPackets -= min(t.Drops["queue"], t.Packets)
		v.DeliveredBytes -= min(t.Drops["queue"]*t.Bytes/max(t.Packets, 1), t.Bytes)
	}
}

// words are the columns of a table: entered, left and dropped.
func (v *trafficView) words() []string {
	if v == nil {
		return []string{"-", "-", "-"}
	}
	var drops []string
	for _, cause := range slices.Sorted(maps.Keys(v.Drops)) {
		drops = append(drops, fmt.Sprintf("%s %d", cause, v.Drops[cause]))
	}
	return []string{
		fmt.Sprintf("%d (%s)", v.Packets, vnet.Bytes(v.Bytes)), fmt.Sprintf("%d (%s)", v.DeliveredPackets, vnet.Bytes(v.DeliveredBytes)),
		orDash(strings.Join(drops, ", ")),
	}
}

// traffic says what this host counted of a lease's links.
func (d *agentDoor) traffic(w http.ResponseWriter, r *http.Request) {
	tenant, network, _ := strings.Cut(r.PathValue("fabric"), ".")
	list, err := d.links.Traffic(vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network)})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}
