package main

import (
	"context"
	"maps"
	"slices"

	"sublet/server"
)

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
