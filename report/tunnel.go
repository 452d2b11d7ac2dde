package report

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"sublet/plan"
	"sublet/vnet"
)

// TunnelState is an entry of an overlay forwarding table as it is now, or what
// a host dropped for want of one.
type TunnelState struct {
	Host vnet.HostID `json:"host"`
	plan.Overlay
	State         string            `json:"state"`              // TunnelValid, TunnelUnresolved or TunnelNone
	Reason        string            `json:"reason,omitempty"`   // of being unresolved
	NextHop       string            `json:"next_hop,omitempty"` // Ethernet address
	PathMTU       int               `json:"path_mtu,omitempty"` // of the inner packet, as the path is now
	Hits          uint64            `json:"hits"`               // packets sent by it
	Bytes         uint64            `json:"bytes"`              // of inner frames
	Received      uint64            `json:"received"`           // packets
	ReceivedBytes uint64            `json:"received_bytes"`
	Drops         map[string]uint64 `json:"drops,omitempty"` // by cause
}

// States of an entry. None is what a host dropped and could tell no entry of.
const (
	TunnelValid      = "valid"
	TunnelUnresolved = "unresolved"
	TunnelNone       = "none"
)

// Labels of tunnels, beside LabelLink: those of plan.Overlay, and the next hop.
const (
	labelVNI        = "vni"
	labelProtocol   = "protocol"
	labelInterface  = "interface"
	labelLocal      = "local"
	labelRemote     = "remote"
	labelMTU        = "mtu"
	labelBestEffort = "best_effort"
	labelEthernet   = "ethernet"
	labelNextHop    = "next_hop"
)

// PathMTU is the gauge of what a tunnel's path carries of inner packets.
const PathMTU = "path_mtu"

// Sample is the form that all parts use. outgoing are the causes of drops of
// packets that the tunnel did not send.
func (t TunnelState) Sample(outgoing []string) Sample {
	s := Sample{Kind: plan.KindOverlay}
	if t.State != TunnelNone {
		s.Key, s.Lease, s.Labels = t.Key(), t.Lease, t.labels()
	}
	return t.SampleAs(s, outgoing)
}

// SampleAs is Sample with the key, the lease and the labels of a former one, which
// must be of the same entry and next hop.
func (t TunnelState) SampleAs(s Sample, outgoing []string) Sample {
	s.Host, s.State, s.Why = t.Host, State(t.State), t.Reason
	s.Counters = make([]Counter, 0, 5+len(t.Drops))
	s.Count(Sent, Packets, t.Hits)
	s.Count(Sent, Bytes, t.Bytes)
	s.Count(Received, Packets, t.Received)
	s.Count(Received, Bytes, t.ReceivedBytes)
	s.Gauge(PathMTU, Bytes, uint64(t.PathMTU))
	if len(t.Drops) == 0 {
		return s
	}
	sent, received := make(map[string]uint64), make(map[string]uint64)
	for cause, n := range t.Drops {
		if slices.Contains(outgoing, cause) {
			sent[cause] = n
		} else {
			received[cause] = n
		}
	}
	s.CountBy(NotSent, sent)
	s.CountBy(Dropped, received)
	return s
}

func (t TunnelState) labels() map[string]string {
	labels := map[string]string{
		LabelLink: t.Link, labelVNI: fmt.Sprint(t.VNI), labelInterface: t.Interface, labelLocal: t.Local.String(),
		labelRemote: t.Remote.String(), labelMTU: strconv.Itoa(t.MTU),
	}
	for name, value := range map[string]string{labelProtocol: string(t.Protocol), labelEthernet: t.Ethernet, labelNextHop: t.NextHop} {
		if value != "" {
			labels[name] = value
		}
	}
	if t.BestEffort {
		labels[labelBestEffort] = "true"
	}
	return labels
}

// Tunnels is what samples say of overlay forwarding tables.
func Tunnels(samples []Sample) ([]TunnelState, error) {
	list := []TunnelState{}
	for _, s := range samples {
		if s.Kind != plan.KindOverlay {
			continue
		}
		t, err := tunnelOf(s)
		if err != nil {
			return nil, fmt.Errorf("read the sample of tunnel %s: %w", s.Key, err)
		}
		list = append(list, t)
	}
	return list, nil
}

func tunnelOf(s Sample) (t TunnelState, err error) {
	t = TunnelState{
		Host: s.Host, State: string(s.State), Reason: s.Why, NextHop: s.Labels[labelNextHop], PathMTU: int(s.Value(PathMTU, Bytes)),
		Hits: s.Value(Sent, Packets), Bytes: s.Value(Sent, Bytes), Received: s.Value(Received, Packets), ReceivedBytes: s.Value(Received, Bytes),
		Drops: sum(s.By(NotSent), s.By(Dropped)),
	}
	if t.State == TunnelNone {
		return t, nil
	}
	t.Overlay = plan.Overlay{
		Lease: s.Lease, Link: s.Labels[LabelLink], Protocol: vnet.Encapsulation(s.Labels[labelProtocol]), Interface: s.Labels[labelInterface],
		BestEffort: s.Labels[labelBestEffort] == "true", Ethernet: s.Labels[labelEthernet],
	}
	var vni uint64
	if vni, err = strconv.ParseUint(s.Labels[labelVNI], 10, 32); err != nil {
		return t, err
	}
	t.VNI = vnet.VNI(vni)
	if t.MTU, err = strconv.Atoi(s.Labels[labelMTU]); err != nil {
		return t, err
	}
	if t.Local, err = netip.ParseAddr(s.Labels[labelLocal]); err != nil {
		return t, err
	}
	t.Remote, err = netip.ParseAddr(s.Labels[labelRemote])
	return t, err
}
