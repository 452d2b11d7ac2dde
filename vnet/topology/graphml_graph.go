package topology

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/vnet"
)

// What is taken where a file does not say.
const (
	unknownSpeed   = 10 * vnet.Gbit
	unknownLatency = 5 * time.Millisecond // no link of the file has a length
)

// substrate turns what was read into vnet's words.
func (r *reader) substrate() (vnet.Substrate, []string) {
	var notes notes
	var sub vnet.Substrate
	names := make([]string, len(r.nodes))
	taken := Names{vnet.OperatorName: 1} // no host's
	for i, n := range r.nodes {
		names[i] = taken.Take(nodeName(n))
		if n.data["hyperedge"] == "1" {
			sub.Switches = append(sub.Switches, names[i])
			continue
		}
		h := hosts(1, Legible(n.data["Country"])).Hosts[0]
		h.Name = vnet.HostID(names[i])
		sub.Hosts = append(sub.Hosts, h)
	}
	seen := make(map[[2]int]int) // directed edges, each of which needs its opposite
	for _, e := range r.edges {
		a, known := r.index[e.from]
		b, too := r.index[e.to]
		switch {
		case !known || !too:
			notes.add("links to nodes that are not there, left out")
			continue
		case a == b:
			notes.add("links back to where they begin, left out")
			continue
		case r.directed && seen[[2]int{b, a}] > 0:
			seen[[2]int{b, a}]--
			continue // the other direction of a link that is there
		}
		seen[[2]int{a, b}]++
		sub.Links = append(sub.Links, vnet.SubstrateLink{
			Ends: [2]string{names[a], names[b]}, Capacity: capacity(e, &notes), Latency: length(r.nodes[a], r.nodes[b]),
		})
	}
	r.lengthen(&sub, &notes)
	return sub, notes.list
}

// lengthen gives links of unknown length the median of the others' latencies.
func (r *reader) lengthen(sub *vnet.Substrate, notes *notes) {
	var known []time.Duration
	for _, l := range sub.Links {
		if l.Latency >= 0 {
			known = append(known, l.Latency)
		}
	}
	slices.Sort(known)
	usual := unknownLatency
	if len(known) > 0 {
		usual = known[len(known)/2]
	}
	for i := range sub.Links {
		if sub.Links[i].Latency < 0 {
			sub.Links[i].Latency = usual
			notes.add("links of unknown length, taken for " + vnet.FormatDuration(usual))
		}
	}
}

// notes counts links of which the same is to be said.
type notes struct {
	list  []string
	texts []string
	count []int
}

func (n *notes) add(text string) {
	i := slices.Index(n.texts, text)
	if i < 0 {
		i = len(n.texts)
		n.texts, n.count, n.list = append(n.texts, text), append(n.count, 0), append(n.list, "")
	}
	n.count[i]++
	n.list[i] = fmt.Sprintf("%s: %d", text, n.count[i])
}

// length is the latency of a link as long as two nodes are apart; -1: where
// one of them is is unknown.
func length(a, b item) time.Duration {
	latA, lonA, known := place(a)
	latB, lonB, too := place(b)
	if !known || !too {
		return -1
	}
	const radius = 6371 // km, mean of the Earth
	h := haversine(latB-latA) + math.Cos(latA)*math.Cos(latB)*haversine(lonB-lonA)
	km := 2 * radius * math.Asin(math.Sqrt(min(h, 1)))
	return time.Duration(km * float64(inFibre)).Round(time.Microsecond)
}

func haversine(angle float64) float64 { return math.Pow(math.Sin(angle/2), 2) }

// place is a node's latitude and longitude in radians.
func place(n item) (lat, lon float64, ok bool) {
	lat, err := strconv.ParseFloat(strings.TrimSpace(n.data["Latitude"]), 64)
	lon, err2 := strconv.ParseFloat(strings.TrimSpace(n.data["Longitude"]), 64)
	ok = err == nil && err2 == nil && math.Abs(lat) <= 90 && math.Abs(lon) <= 180
	return lat * math.Pi / 180, lon * math.Pi / 180, ok
}

// nodeName is a node's label as a name; without a usable one, "n" and its id.
func nodeName(n item) string {
	if name := Legible(n.data["label"]); name != "" && name != "None" {
		return name
	}
	if name := Legible("n" + n.id); name != "" {
		return name
	}
	return "n"
}
