package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"sublet/openflow/controller"
	"sublet/openflow/of13"
	"sublet/openflow/text"
	"sublet/vnet"
	"sublet/vnet/file"
)

// The form of a file of virtual routers and links (docs/controllers.md).
type (
	slicedSwitches struct {
		Switches []slicedSwitch `yaml:"switches"`
	}
	slicedSwitch struct {
		DatapathID string       `yaml:"datapath_id"`
		Entries    int          `yaml:"entries"`
		Meters     int          `yaml:"meters,omitempty"`
		VxLinks    []vxLinkForm `yaml:"vxlinks"`
		VxRouters  []vxRouter   `yaml:"vxrouters"`
	}
	vxLinkForm struct {
		Name  string `yaml:"name"`
		Port  int    `yaml:"port"`
		Rate  string `yaml:"rate,omitempty"`
		Queue *int   `yaml:"queue,omitempty"`
	}
	vxRouter struct {
		Name   string        `yaml:"name"`
		Ports  []int         `yaml:"ports"`
		Match  string        `yaml:"match,omitempty"`
		Mode   string        `yaml:"mode,omitempty"`
		Routes []vxRouteForm `yaml:"routes"`
	}
	vxRouteForm struct {
		To       string `yaml:"to,omitempty"`
		Match    string `yaml:"match,omitempty"`
		Priority int    `yaml:"priority,omitempty"`
		VxLink   string `yaml:"vxlink"`
		Next     string `yaml:"next,omitempty"`
	}
)

// readVxRouters reads what switches get, by datapath identifier. What cannot be on
// one switch beside the rest is refused here, before anything is sent.
func readVxRouters(name string) (map[uint64]controller.Installed, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--vxrouters: %w", err)
	}
	var form slicedSwitches
	made := make(map[uint64]controller.Installed)
	err = file.Decode(name, raw, &form, func() error {
		for i := range form.Switches {
			path := fmt.Sprintf("switches[%d]", i)
			dpid, err := strconv.ParseUint(form.Switches[i].DatapathID, 16, 64)
			if err != nil {
				return fieldProblem(path+".datapath_id", errors.New("write up to 16 hexadecimal digits"))
			}
			if _, twice := made[dpid]; twice {
				return fieldProblem(path+".datapath_id", errors.New("another switch has it already"))
			}
			if made[dpid], err = form.Switches[i].compile(path); err != nil {
				return err
			}
		}
		return nil
	})
	return made, err
}

func fieldProblem(path string, err error) error {
	return &vnet.FieldError{Path: path, Problem: err.Error()}
}

func (f *slicedSwitch) compile(path string) (made controller.Installed, err error) {
	s := controller.Slicing{MaxEntries: f.Entries, MaxMeters: f.Meters}
	for i, l := range f.VxLinks {
		link, err := l.link()
		if err != nil {
			return made, fieldProblem(fmt.Sprintf("%s.vxlinks[%d]", path, i), err)
		}
		s.Links = append(s.Links, link)
	}
	for i := range f.VxRouters {
		r, err := f.VxRouters[i].router()
		if err != nil {
			return made, fieldProblem(fmt.Sprintf("%s.vxrouters[%d]", path, i), err)
		}
		s.Routers = append(s.Routers, r)
	}
	if made, err = s.Compile(); err != nil {
		return made, fieldProblem(path, err)
	}
	return made, nil
}

func (f vxLinkForm) link() (l controller.VxLink, err error) {
	l = controller.VxLink{Name: f.Name, Port: uint32(f.Port)}
	switch {
	case vnet.CheckName(f.Name) != nil:
		return l, vnet.CheckName(f.Name)
	case f.Port < 1 || f.Port > int(of13.PortMax):
		return l, fmt.Errorf("port %d is not the number of a port", f.Port)
	case (f.Rate == "") == (f.Queue == nil):
		return l, errors.New("state either rate, for a meter, or queue")
	case f.Queue != nil && (*f.Queue < 0 || *f.Queue >= int(of13.QueueAll)):
		return l, fmt.Errorf("queue %d is not the number of a queue", *f.Queue)
	case f.Queue != nil:
		l.Queue = uint32(*f.Queue)
		return l, nil
	}
	rate, err := vnet.ParseRate(f.Rate)
	if err == nil && (rate < vnet.MinRate || rate > vnet.MaxRate || rate/vnet.Kbit > 1<<32-1) {
		err = fmt.Errorf("rate %s: a meter has %s to %s", f.Rate, vnet.MinRate, vnet.Rate(1<<32-1)*vnet.Kbit)
	}
	l.Kbps = uint32(rate / vnet.Kbit)
	return l, err
}

func (f *vxRouter) router() (r controller.VxRouter, err error) {
	r = controller.VxRouter{Name: f.Name, Active: f.Mode == "active"}
	if err := vnet.CheckName(f.Name); err != nil {
		return r, err
	}
	if f.Mode != "" && f.Mode != "active" && f.Mode != "proactive" {
		return r, fmt.Errorf("mode %q: there are proactive (what meets no route is dropped) and active (the controller decides)", f.Mode)
	}
	for _, port := range f.Ports {
		if port < 1 || port > int(of13.PortMax) || slices.Contains(r.Ports, uint32(port)) {
			return r, fmt.Errorf("ports: %d is not the number of a port, or stands there twice", port)
		}
		r.Ports = append(r.Ports, uint32(port))
	}
	if r.Match, err = text.Fields(f.Match); err != nil {
		return r, fmt.Errorf("match: %w", err)
	}
	for i := range f.Routes {
		route, err := f.Routes[i].route()
		if err != nil {
			return r, fmt.Errorf("routes[%d]: %w", i, err)
		}
		r.Routes = append(r.Routes, route)
	}
	return r, nil
}

func (f vxRouteForm) route() (r controller.Route, err error) {
	r = controller.Route{Priority: f.Priority, VxLink: f.VxLink}
	if f.Priority < 0 || f.Priority > controller.MaxRoutePriority {
		return r, fmt.Errorf("priority %d is not between 0 and %d", f.Priority, controller.MaxRoutePriority)
	}
	if f.To != "" {
		if r.To, err = netip.ParsePrefix(f.To); err != nil || r.To != r.To.Masked() {
			return r, fmt.Errorf("to %q: write a network such as 10.1.0.0/16", f.To)
		}
	}
	if f.Next != "" {
		hw, err := net.ParseMAC(f.Next)
		if err != nil || len(hw) != 6 {
			return r, fmt.Errorf("next %q: write an Ethernet address such as 02:00:00:00:00:01", f.Next)
		}
		r.Next = [6]byte(hw)
	}
	if r.Match, err = text.Fields(f.Match); err != nil {
		return r, fmt.Errorf("match: %w", err)
	}
	return r, nil
}
