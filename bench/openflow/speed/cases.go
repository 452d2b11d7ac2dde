package main

import (
	"sublet/bench/openflow/bed"
	"sublet/measure/pktgen"
	"sublet/openflow/of13"
)

const (
	one    = "one rule, one flow"
	sets   = "4 set-fields"
	copies = "4 outputs"
	plenty = "one rule, 100,000 flows"
	many   = "10,000 rules, 16 masks, 10,000 flows"
	stream = "TCP"
)

var cases = []load{
	{name: one, flows: 1, entries: across()},
	{name: "one rule, 1,000 flows", flows: 1000, entries: across()},
	{name: plenty, flows: 100_000, entries: across()},
	{name: many, flows: 10_000, program: true, entries: rules(10_000, 16)},
	{name: sets, flows: 1, program: true, entries: across(
		of13.SetField(of13.Exact(of13.EthSrc, 0x02000000aa01)), of13.SetField(of13.Exact(of13.EthDst, 0x02000000aa02)),
		of13.SetField(of13.Exact(of13.IPv4Src, 0x0a090909)), of13.SetField(of13.Exact(of13.UDPSrc, 4242)))},
	{name: copies, flows: 1, program: true, entries: across(of13.Output(3), of13.Output(4), of13.Output(5))},
	{name: stream, entries: across(), stream: true},
}

// aim is a bar.
type aim struct {
	kind     bed.Kind
	load     string
	base     bed.Kind
	baseLoad string
	least    float64
}

var aims = []aim{
	{bed.Kernel, one, bed.Learning, one, 0.85},
	{bed.Kernel, one, bed.OVS, one, 3},
	{bed.Kernel, many, bed.Kernel, one, 0.95},
	{bed.Kernel, many, bed.Kernel, plenty, 0}, // whose frames the sender's cache does not hold either
	{bed.OVS, many, bed.OVS, one, 0},
	{bed.Kernel, sets, bed.Kernel, one, 0.95},
	{bed.Kernel, copies, bed.Kernel, one, 0.6},
	{bed.OVS, copies, bed.OVS, one, 0},
	{bed.Process, one, bed.OVS, one, 1.5},
	{bed.Process, many, bed.Process, one, 0},
	{bed.Sockets, one, bed.OVS, one, 1.5},
	{bed.Sockets, one, bed.AFXDP, one, 0},
	{bed.Sockets, many, bed.Sockets, one, 0},
	{bed.Kernel, stream, bed.Bridge, stream, 1},
}

// udp is what the frames are; a set-field of UDP needs it.
func udp(more ...of13.Field) []of13.Field {
	return append([]of13.Field{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 17)}, more...)
}

// across joins the first two ports; actions are done to UDP on its way.
func across(actions ...of13.Action) func(*bed.Switch) []of13.Message {
	return func(*bed.Switch) []of13.Message {
		list := []of13.Message{
			bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 1)}, of13.Output(2)),
			bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 2)}, of13.Output(1)),
		}
		if len(actions) > 0 {
			list = append(list, bed.Entry(2, append([]of13.Field{of13.Exact(of13.InPort, 1)}, udp()...), append(actions, of13.Output(2))...))
		}
		return list
	}
}

// rules has one for each flow, with so many masks.
func rules(number, masks int) func(*bed.Switch) []of13.Message {
	return func(s *bed.Switch) []of13.Message {
		list := across()(s)
		for i := range number {
			to := pktgen.Flow(i).As4()
			mask := of13.U128{Lo: 0xffffffff << (i % masks) & 0xffffffff}
			match := []of13.Field{
				of13.Exact(of13.EthType, 0x0800), of13.WithMask(of13.IPv4Src, of13.U128{Lo: 0x0a000001}, mask), of13.ExactU128(of13.IPv4Dst, of13.ReadU128(to[:])),
			}
			list = append(list, bed.Entry(3, match, of13.Output(2)))
		}
		return list
	}
}
