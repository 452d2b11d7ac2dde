package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"sublet/server"
	"sublet/vnet"
)

// reachTime is how long nodes are asked whether they reach each other: OSPF may
// take most of it.
const reachTime = 5 * time.Second

// unreached lists who of a lease does not answer whom.
func unreached(ctx context.Context, job server.CheckJob) (all []string, err error) {
	job.Progress("who reaches whom")
	hosts := slices.Sorted(maps.Values(job.Lease.Mapping.Nodes))
	for _, host := range slices.Compact(hosts) {
		missing, err := job.Reach(ctx, host)
		if err != nil {
			return nil, err
		}
		all = append(all, missing...)
	}
	return all, nil
}

// reach asks for it on this host.
func (d *agentDoor) reach(w http.ResponseWriter, r *http.Request) {
	tenant, network, _ := strings.Cut(r.PathValue("fabric"), ".")
	missing := []string{}
	if problem := d.reached.Ask(r.Context(), vnet.LeaseID{Tenant: vnet.TenantID(tenant), Network: vnet.VNetID(network)}, reachTime); problem != "" {
		missing = append(missing, problem)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(missing)
}
