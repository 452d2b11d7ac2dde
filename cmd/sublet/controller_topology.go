package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"sublet/openflow/controller"
	"sublet/vnet"
	"sublet/vnet/file"
)

// writeTopology keeps a substrate file as the topology is: what embeds requests
// reads it. A topology without stations is no substrate, so nothing is written.
func writeTopology(name string, log *slog.Logger) func(controller.Topology) {
	return func(t controller.Topology) {
		if len(t.Stations) == 0 {
			return
		}
		if err := replaceTopology(name, t); err != nil {
			log.Error("the topology is not written", "file", name, "why", err)
		}
	}
}

func replaceTopology(name string, t controller.Topology) error {
	s := substrateOf(t)
	if err := s.Check(); err != nil {
		return err
	}
	text, err := file.FormatSubstrate(s)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) // it is not there when all went well
	_, err = next.Write(text)
	if e := next.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(next.Name(), 0o644)
	}
	if err != nil {
		return err
	}
	return os.Rename(next.Name(), name)
}

// substrateOf makes stations hosts without processors and memory, which
// controllers cannot know, and ports as fast as the slower end of a link says.
func substrateOf(t controller.Topology) (s vnet.Substrate) {
	for _, dpid := range t.Switches {
		s.Switches = append(s.Switches, switchName(dpid))
	}
	for i, l := range t.Links {
		a, b := l.Ends[0], l.Ends[1]
		name := fmt.Sprintf("%s-%d-%s-%d", switchName(a.DatapathID), a.Port, switchName(b.DatapathID), b.Port)
		if vnet.CheckName(name) != nil {
			name = fmt.Sprintf("link-%d", i)
		}
		s.Links = append(s.Links, vnet.SubstrateLink{Name: name, Ends: [2]string{switchName(a.DatapathID), switchName(b.DatapathID)}, Capacity: portRate(a, b)})
	}
	for _, h := range t.Stations {
		name := fmt.Sprintf("h-%012x", h.Address)
		s.Hosts = append(s.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name)})
		at := switchName(h.At.DatapathID)
		s.Links = append(s.Links, vnet.SubstrateLink{Name: name + "-" + at, Ends: [2]string{name, at}, Capacity: portRate(h.At, h.At)})
	}
	return s
}

func switchName(dpid uint64) string { return fmt.Sprintf("s%x", dpid) }

// portRate is what the slower of two ports carries; one that does not say counts
// as 1 Gbit/s.
func portRate(a, b controller.TopologyPort) vnet.Rate {
	rate := min(speed(a), speed(b))
	return min(max(rate, vnet.MinRate), vnet.MaxRate)
}

func speed(p controller.TopologyPort) vnet.Rate {
	if p.Speed == 0 {
		return vnet.Gbit
	}
	return vnet.Rate(p.Speed) * vnet.Kbit
}
