package embed

import (
	"fmt"
	"strconv"

	"sublet/embed/calendar"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Exits (vnet.Exit) are looked at as ways out are: their switches stand where the
// exit is, and each has one of its VLANs.

func hasAccess(s vnet.VirtualSwitch) bool { return s.Access != "" }

// vlanKey names a VLAN of an exit in the calendar; 0: frames without a tag.
func vlanKey(exit string, vlan uint16) string {
	return rate.ExitPrefix + exit + ":" + strconv.Itoa(int(vlan))
}

// vlans chooses those of switches with access to an exit among the ones that are
// free in all of their time, the present one first; the error is *Infeasible.
func (e *Embedder) vlans(cal *calendar.Calendar, request vnet.Request, spans []span, present map[string]uint16) (map[string]uint16, error) {
	var chosen map[string]uint16
	taken := make(map[string]bool) // by this network
	for _, s := range request.Union().Switches {
		if !hasAccess(s) {
			continue
		}
		exit, _ := e.sub.ExitOf(s.Access)
		vlan, err := freeVLAN(cal, exit, s, spans, taken, present)
		if err != nil {
			return nil, err
		}
		if chosen == nil {
			chosen = make(map[string]uint16)
		}
		chosen[s.Name], taken[vlanKey(exit.Name, vlan)] = vlan, true
	}
	return chosen, nil
}

func freeVLAN(cal *calendar.Calendar, exit vnet.Exit, s vnet.VirtualSwitch, spans []span, taken map[string]bool, present map[string]uint16) (uint16, error) {
	free := func(vlan uint16) bool {
		if taken[vlanKey(exit.Name, vlan)] {
			return false
		}
		for _, at := range spans {
			if _, there := at.topology.Switch(s.Name); there && cal.Residual(vlanKey(exit.Name, vlan), 1, at.window) < 1 {
				return false
			}
		}
		return true
	}
	no := func(format string, args ...any) error {
		return &Infeasible{Reasons: []string{fmt.Sprintf(format, args...)}, Nodes: []string{s.Name}}
	}
	if was, there := present[s.Name]; there && (s.VLAN == 0 || s.VLAN == was) && exit.VLANs.Contains(was) && free(was) {
		return was, nil
	}
	switch {
	case s.VLAN != 0 && !exit.VLANs.Contains(s.VLAN):
		return 0, no("exit %s has %s, not VLAN %d", exit.Name, offeredVLANs(exit), s.VLAN)
	case s.VLAN != 0 && !free(s.VLAN):
		return 0, no("VLAN %d of exit %s is taken in this window", s.VLAN, exit.Name)
	case s.VLAN != 0:
		return s.VLAN, nil
	}
	for vlan := exit.VLANs.First; vlan <= exit.VLANs.Last; vlan++ {
		if free(vlan) {
			return vlan, nil
		}
	}
	return 0, no("exit %s is taken in this window: it has %s", exit.Name, offeredVLANs(exit))
}

func offeredVLANs(x vnet.Exit) string {
	if x.VLANs == (vnet.VLANRange{}) {
		return "no VLANs, so one network can have it"
	}
	return "VLANs " + x.VLANs.String()
}

// bookVLANs lists the VLANs that a mapping takes in a span. An error says what of
// them the substrate does not have.
func (e *Embedder) bookVLANs(at span, m vnet.Mapping) (list []calendar.Booking, err error) {
	for _, s := range at.topology.Switches {
		if !hasAccess(s) {
			continue
		}
		exit, ok := e.sub.ExitOf(s.Access)
		switch vlan, has := m.VLANs[s.Name]; {
		case !ok:
			return nil, fmt.Errorf("exit %s would be gone", s.Access)
		case !has || !exit.VLANs.Contains(vlan):
			return nil, fmt.Errorf("switch %s has VLAN %d, which is not of exit %s", s.Name, vlan, s.Access)
		case m.Nodes[s.Name] != exit.Host:
			return nil, fmt.Errorf("switch %s is on %s, and exit %s is on %s", s.Name, m.Nodes[s.Name], s.Access, exit.Host)
		default:
			list = append(list, calendar.Booking{Key: vlanKey(exit.Name, vlan), Amount: 1, Window: at.window})
		}
	}
	return list, nil
}

// addExits adds what exits offer to capacities by key.
func addExits(capacities map[string]int64, sub vnet.Substrate) {
	for _, x := range sub.Exits {
		for _, dir := range vnet.Directions {
			capacities[rate.Exit(x.Name, dir).String()] = int64(x.Capacity)
		}
		for vlan := x.VLANs.First; vlan <= x.VLANs.Last; vlan++ {
			capacities[vlanKey(x.Name, vlan)] = 1
		}
	}
}
