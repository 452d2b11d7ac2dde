package report

import (
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// Counters of KindProcessor: time that the kernel of a host spent on a lease's packets,
// and by how many thousandths it may be off.
const (
	Kernel      = "kernel"
	KernelError = "kernel_error_permille"
)

// KernelSample says what a host spent on a lease's packets on links, or in chains.
func KernelSample(of plan.Kind, key string, lease vnet.LeaseID, spent time.Duration, m vnet.Measurement) Sample {
	s := Sample{Kind: KindProcessor, Key: key, Lease: lease, Labels: map[string]string{LabelOf: string(of)}}
	s.Count(Kernel, Nanoseconds, uint64(spent))
	s.Gauge(KernelError, None, uint64(1000*m.KernelError()+0.5))
	return s
}

// LabelOf says which part of a lease something is of: links or chains.
const LabelOf = "of"

// KernelOfLinks adds up, for each lease of samples of links, what a host spent on them.
func KernelOfLinks(samples []Sample, m vnet.Measurement) (list []Sample) {
	spent := make(map[vnet.LeaseID]time.Duration)
	var order []vnet.LeaseID
	for _, s := range samples {
		if s.Kind != plan.KindVxLink {
			continue
		}
		t := trafficOf(s)
		if _, ok := spent[s.Lease]; !ok {
			order = append(order, s.Lease)
		}
		spent[s.Lease] += m.KernelTime(t.First && t.Last, t.Packets, t.Bytes)
	}
	for _, lease := range order {
		list = append(list, KernelSample(plan.KindVxLink, plan.Fabric(lease), lease, spent[lease], m))
	}
	return list
}
