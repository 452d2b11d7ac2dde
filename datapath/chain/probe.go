package chain

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/datapath/nsh"
	"sublet/datapath/nsh/header"
	"sublet/plan"
	"sublet/vnet"
)

// probed is a program that is sent a packet which it has to pass. The data path counts
// what comes back of it (nsh.Prober).
type probed struct {
	sender *frameSender
	frame  []byte
	next   time.Time
	passed uint64 // by it, when it was sent the last one
	lived  bool   // once: one that still starts is not dead
	fails  int    // probes after which nothing came back, one after another
}

// probedKey is an item's key and a function.
type probedKey struct{ item, function string }

// frameSender sends frames by a device of a lease's fabric.
type frameSender struct{ fd, index int }

func openSender(host *kernel.Host, fabric, device string) (*frameSender, error) {
	home, err := host.Open(fabric)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	s := &frameSender{fd: -1}
	return s, kernel.In(home, func() error {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		s.index = i.Index
		s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
}

func (s *frameSender) close() {
	if s != nil && s.fd >= 0 {
		unix.Close(s.fd)
	}
}

func (s *frameSender) send(frame []byte) error {
	return unix.Sendto(s.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: s.index})
}

// prober sends the probes of a host.
type prober struct{ of map[probedKey]*probed }

// probe sends each program the probe whose turn it is, and says of those that are
// dead which the data path takes for alive: it looks only while packets come.
func (p *Part) probe(items []plan.Chains, reports []nsh.Report, now time.Time) error {
	there := make(map[probedKey]bool)
	var failed []error
	for i, c := range items {
		for _, f := range c.Functions {
			at := slices.IndexFunc(c.Hops, func(h plan.ChainHop) bool { return h.Function == f.Name && h.OnFailure != "" })
			if f.Probe == nil || at < 0 {
				continue
			}
			key := probedKey{c.Key(), f.Name}
			there[key] = true
			if err := p.probeOne(key, f, c.Hops[at], passedBy(c, reports[i], f.Name), now); err != nil {
				failed = append(failed, err)
			}
		}
	}
	for key, one := range p.prober.of {
		if !there[key] {
			one.sender.close()
			delete(p.prober.of, key)
		}
	}
	return errors.Join(failed...)
}

// passedBy is how many packets a program has returned, probes among them.
func passedBy(c plan.Chains, r nsh.Report, function string) uint64 {
	n := uint64(r.Answers[function])
	for i, h := range c.Hops {
		if h.Function == function && i < len(r.Hops) {
			n += r.Hops[i].Returned
		}
	}
	return n
}

func (p *Part) probeOne(key probedKey, f plan.ChainFunction, at plan.ChainHop, passed uint64, now time.Time) error {
	one := p.prober.of[key]
	if one == nil {
		one = &probed{passed: passed, lived: passed > 0}
		if p.prober.of == nil {
			p.prober.of = make(map[probedKey]*probed)
		}
		p.prober.of[key] = one
	}
	if now.Before(one.next) {
		return nil
	}
	one.next = now.Add(cmp.Or(time.Duration(f.Patience), vnet.DefaultHealthPatience) / tries)
	if passed != one.passed {
		one.passed, one.lived, one.fails = passed, true, 0
	} else if one.sender != nil {
		one.fails++
	}
	if err := one.send(p.host, key, f, at); err != nil || !one.lived || one.fails < tries {
		return err
	}
	return p.plane.Bury(key.item, key.function)
}

// send sends the probe. A device that is not there is being made, and is looked for
// again.
func (one *probed) send(host *kernel.Host, key probedKey, f plan.ChainFunction, at plan.ChainHop) (err error) {
	one.frame, err = probeFrame(*f.Probe)
	if err == nil && f.Aware {
		one.frame, err = behindHeader(one.frame, at)
	}
	if err != nil {
		return fmt.Errorf("the probe of %s: %w", key.function, err)
	}
	if one.sender == nil {
		s, err := openSender(host, key.item, f.In)
		if err != nil {
			s.close()
			return nil
		}
		one.sender = s
	}
	if one.sender.send(one.frame) != nil {
		one.sender.close()
		one.sender, one.fails = nil, 0
	}
	return nil
}

// anywhere is an address that no interface has, so that a bridge sends the frame on.
var anywhere = net.HardwareAddr{0x02, 0x53, 0x4c, 0x54, 0x52, 0x5a}

const hops = 64

// probeFrame is the frame of a packet that a match states whole.
func probeFrame(m plan.ChainMatch) ([]byte, error) {
	var dscp uint8
	if m.DSCP != nil {
		dscp = *m.DSCP << 2
	}
	link := &layers.Ethernet{SrcMAC: nsh.Prober, DstMAC: anywhere, EthernetType: layers.EthernetTypeIPv4}
	protocol := layers.IPProtocol(protocolOf(m))
	var network interface {
		gopacket.NetworkLayer
		gopacket.SerializableLayer
	} = &layers.IPv4{Version: 4, TTL: hops, TOS: dscp, Protocol: protocol, SrcIP: m.Src.Addr().AsSlice(), DstIP: m.Dst.Addr().AsSlice()}
	if m.Dst.Addr().Is6() {
		link.EthernetType = layers.EthernetTypeIPv6
		network = &layers.IPv6{Version: 6, HopLimit: hops, TrafficClass: dscp, NextHeader: protocol, SrcIP: m.Src.Addr().AsSlice(), DstIP: m.Dst.Addr().AsSlice()}
	}
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		append([]gopacket.SerializableLayer{link, network}, transportOf(m, network)...)...)
	return b.Bytes(), err
}

// behindHeader is a frame as a function that knows NSH gets it at a hop.
func behindHeader(frame []byte, at plan.ChainHop) ([]byte, error) {
	b := slices.Concat(anywhere, nsh.Prober, []byte{unix.ETH_P_NSH >> 8, unix.ETH_P_NSH & 0xff})
	b, err := header.Header{TTL: hops - 1, MD: 2, Next: header.Ethernet, Path: at.Path, Index: at.Index}.Append(b)
	return append(b, frame...), err
}

// transportOf are the layers above IP: a datagram, the beginning of a connection, or an
// echo.
func transportOf(m plan.ChainMatch, network gopacket.NetworkLayer) []gopacket.SerializableLayer {
	switch protocolOf(m) {
	case unix.IPPROTO_TCP:
		tcp := &layers.TCP{SrcPort: layers.TCPPort(m.SrcPorts[0]), DstPort: layers.TCPPort(m.DstPorts[0]), SYN: true, Window: 1024}
		_ = tcp.SetNetworkLayerForChecksum(network) // it knows both families
		return []gopacket.SerializableLayer{tcp}
	case unix.IPPROTO_ICMP:
		return []gopacket.SerializableLayer{&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0)}}
	case unix.IPPROTO_ICMPV6:
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
		_ = icmp.SetNetworkLayerForChecksum(network)
		return []gopacket.SerializableLayer{icmp, &layers.ICMPv6Echo{}}
	}
	udp := &layers.UDP{SrcPort: layers.UDPPort(m.SrcPorts[0]), DstPort: layers.UDPPort(m.DstPorts[0])}
	_ = udp.SetNetworkLayerForChecksum(network)
	return []gopacket.SerializableLayer{udp, gopacket.Payload("sublet")}
}
