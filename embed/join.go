package embed

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Places to join (vnet.Join) are looked at as ways out are: their nodes stand
// where the place is, and each has one of its ports.

func joins(n vnet.VirtualNode) bool { return n.Join != "" }

// portKey names a port of a place to join in the calendar.
func portKey(join string, port uint16) string {
	return rate.JoinPrefix + join + ":" + strconv.Itoa(int(port))
}

// ports chooses those of nodes that join among the ones that are free in all of
// their time, the present one first; the error is *Infeasible.
func (e *Embedder) ports(cal *calendar.Calendar, request vnet.Request, spans []span, present map[string]uint16) (map[string]uint16, error) {
	var chosen map[string]uint16
	taken := make(map[string]bool) // by this network
	for _, n := range request.Union().Nodes {
		if !joins(n) {
			continue
		}
		join, _ := e.sub.JoinOf(n.Join)
		port, ok := freePort(cal, join, request, n.Name, spans, taken, present[n.Name])
		if !ok {
			return nil, &Infeasible{Reasons: []string{fmt.Sprintf("all ports %s of place to join %s are taken in this window", join.Ports, join.Name)}, Nodes: []string{n.Name}}
		}
		if chosen == nil {
			chosen = make(map[string]uint16)
		}
		chosen[n.Name], taken[portKey(join.Name, port)] = port, true
	}
	return chosen, nil
}

// freePort looks first at the present one, then from one that follows from the
// names on, so that a network mostly has the same again.
func freePort(cal *calendar.Calendar, join vnet.Join, request vnet.Request, node string, spans []span, taken map[string]bool, present uint16) (uint16, bool) {
	free := func(port uint16) bool {
		if taken[portKey(join.Name, port)] {
			return false
		}
		for _, at := range spans {
			if hasNode(at.topology, node) && cal.Residual(portKey(join.Name, port), 1, at.window) < 1 {
				return false
			}
		}
		return true
	}
	if join.Ports.Contains(present) && free(present) {
		return present, true
	}
	digest := fnv.New32a()
	fmt.Fprintf(digest, "%s/%s/%s", request.Tenant, request.Network, node)
	size := uint32(join.Ports.Last-join.Ports.First) + 1
	for i := range size {
		if port := join.Ports.First + uint16((digest.Sum32()%size+i)%size); free(port) {
			return port, true
		}
	}
	return 0, false
}

func hasNode(t vnet.Topology, name string) bool {
	for _, n := range t.Nodes {
		if n.Name == name {
			return true
		}
	}
	return false
}

// bookPorts lists the ports that a mapping takes in a span. An error says what of
// them the substrate does not have.
func (e *Embedder) bookPorts(at span, m vnet.Mapping) (list []calendar.Booking, err error) {
	for _, n := range at.topology.Nodes {
		if !joins(n) {
			continue
		}
		join, ok := e.sub.JoinOf(n.Join)
		switch port := m.Joins[n.Name]; {
		case !ok:
			return nil, fmt.Errorf("place to join %s would be gone", n.Join)
		case !join.Ports.Contains(port):
			return nil, fmt.Errorf("node %s has port %d, which is not of place to join %s", n.Name, port, n.Join)
		case m.Nodes[n.Name] != join.Host:
			return nil, fmt.Errorf("node %s is on %s, and place to join %s is on %s", n.Name, m.Nodes[n.Name], n.Join, join.Host)
		default:
			list = append(list, calendar.Booking{Key: portKey(join.Name, port), Amount: 1, Window: at.window})
		}
	}
	return list, nil
}

// addJoins adds what places to join offer to capacities by key.
func addJoins(capacities map[string]int64, sub vnet.Substrate) {
	for _, j := range sub.Joins {
		for _, dir := range vnet.Directions {
			capacities[rate.Join(j.Name, dir).String()] = int64(j.Capacity)
		}
		for port := int(j.Ports.First); port <= int(j.Ports.Last); port++ {
			capacities[portKey(j.Name, uint16(port))] = 1
		}
	}
}
