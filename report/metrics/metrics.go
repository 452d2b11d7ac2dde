// Package metrics gives samples, and what else is counted, the form of
// Prometheus. Names follow "Metric and label naming" of its documentation: base
// units but for rates, which are bit/s as everywhere in Sublet.
//
//	sample of kind vxlink, counter entered, unit packets
//	    -> sublet_vxlink_entered_packets_total{tenant, network, host, link, ...}
package metrics

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"sublet/report"
)

// prefix begins the name of every metric.
const prefix = "sublet_"

// List collects metrics that are made at the moment they are asked for.
type List struct{ metrics []prometheus.Metric }

// Describe tells of none: which there are depends on the leases there are.
func (l *List) Describe(chan<- *prometheus.Desc) {}

// Collect hands out the list.
func (l *List) Collect(to chan<- prometheus.Metric) {
	for _, m := range l.metrics {
		to <- m
	}
}

// Gauge adds a value that may fall.
func (l *List) Gauge(name, help string, value float64, labels map[string]string) {
	l.add(prometheus.GaugeValue, name, help, value, labels)
}

// Total adds a value that only grows.
func (l *List) Total(name, help string, value float64, labels map[string]string) {
	l.add(prometheus.CounterValue, name, help, value, labels)
}

// Samples adds the states and counters of samples. The state of a thing is a
// gauge of 1 with the label state, so that a thing has one series at a time.
func (l *List) Samples(list []report.Sample) {
	for _, s := range list {
		labels := labelsOf(s)
		if s.State != "" {
			l.Gauge(name(kindOf(s), "state"), "State of a thing: 1 with its label state.", 1, With(labels, "state", string(s.State)))
		}
		for _, c := range s.Counters {
			l.counter(s, c, labels)
		}
	}
}

func (l *List) counter(s report.Sample, c report.Counter, labels map[string]string) {
	parts := []string{kindOf(s), c.Name}
	value := float64(c.Value)
	switch c.Unit {
	case report.None:
	case report.Nanoseconds:
		parts, value = append(parts, "seconds"), value/1e9
	default:
		parts = append(parts, string(c.Unit))
	}
	kind := prometheus.GaugeValue
	if !c.Gauge {
		kind, parts = prometheus.CounterValue, append(parts, "total")
	}
	if c.Cause != "" {
		labels = With(labels, "cause", c.Cause)
	}
	l.add(kind, name(parts...), "Counter "+c.Name+" of samples of kind "+string(s.Kind)+": docs/watch.md.", value, labels)
}

func (l *List) add(kind prometheus.ValueType, name, help string, value float64, labels map[string]string) {
	names := slices.Sorted(maps.Keys(labels))
	values := make([]string, len(names))
	for i, n := range names {
		values[i] = labels[n]
	}
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(prefix+name, help, names, nil), kind, value, values...)
	if err != nil {
		m = prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	l.metrics = append(l.metrics, m)
}

// labelsOf are those of a sample. Its key is one only where nothing else tells it
// from others of its kind.
func labelsOf(s report.Sample) map[string]string {
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = make(map[string]string)
	}
	if s.Host != "" {
		labels["host"] = string(s.Host)
	}
	if s.Lease.Network != "" {
		labels["tenant"], labels["network"] = string(s.Lease.Tenant), string(s.Lease.Network)
	}
	switch {
	case s.Kind == report.KindLease || s.Key == string(s.Host) || labels[report.LabelLink] != "":
	case s.Kind == report.KindLink:
		labels[report.LabelLink] = s.Key
	default:
		labels["key"] = s.Key
	}
	return labels
}

// kindOf is a sample's in the names of metrics, where links of the substrate are
// told from virtual ones.
func kindOf(s report.Sample) string {
	if s.Kind == report.KindLink {
		return "substrate_link"
	}
	return string(s.Kind)
}

func With(labels map[string]string, name, value string) map[string]string {
	labels = maps.Clone(labels)
	labels[name] = value
	return labels
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// name joins words of samples to a metric's name.
func name(words ...string) string {
	return notInNames.ReplaceAllString(strings.ToLower(strings.Join(words, "_")), "_")
}
