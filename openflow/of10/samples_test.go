package of10

import "sublet/openflow/of13"

func ip(v uint64) of13.U128 { return of13.U128{Lo: v} }

// sampleMatches are as they are read.
func sampleMatches() []of13.Match {
	return []of13.Match{
		{},
		{Fields: []of13.Field{
			of13.Exact(of13.InPort, 3), of13.Exact(of13.EthSrc, 0x020000000001), of13.Exact(of13.EthDst, 0xffffffffffff), of13.Exact(of13.VLANVID, of13.VLANPresent|77),
			of13.Exact(of13.VLANPCP, 5), of13.Exact(of13.EthType, ipv4), of13.Exact(of13.IPDSCP, 46), of13.WithMask(of13.IPv4Src, ip(0x0a000000), ip(0xff000000)),
			of13.Exact(of13.IPv4Dst, 0x0a000001), of13.Exact(of13.IPProto, tcp), of13.Exact(of13.TCPSrc, 80), of13.Exact(of13.TCPDst, 81),
		}},
		{Fields: []of13.Field{
			of13.Exact(of13.VLANVID, 0), of13.Exact(of13.EthType, ipv4), of13.WithMask(of13.IPv4Dst, ip(0x80000000), ip(0x80000000)),
			of13.Exact(of13.IPProto, icmp), of13.Exact(of13.ICMPv4Type, 8), of13.Exact(of13.ICMPv4Code, 0),
		}},
		{Fields: []of13.Field{
			of13.WithMask(of13.VLANVID, ip(of13.VLANPresent), ip(of13.VLANPresent)), of13.Exact(of13.VLANPCP, 1), of13.Exact(of13.EthType, arp),
			of13.Exact(of13.ARPOp, 2), of13.WithMask(of13.ARPSPA, ip(0x0a000000), ip(0xfffffffe)), of13.Exact(of13.ARPTPA, 5),
		}},
		{Fields: []of13.Field{of13.Exact(of13.InPort, uint64(of13.PortLocal)), of13.Exact(of13.EthType, ipv4), of13.Exact(of13.IPProto, udp), of13.Exact(of13.UDPDst, 53)}},
	}
}

func loose(id of13.FieldID, v uint64) of13.Action {
	return of13.Action{Type: of13.ActionSetField, Field: of13.Exact(id, v), Loose: true}
}

func sampleActions() []of13.Action {
	push := of13.Action{Type: of13.ActionPushVLAN, EtherType: tagType, Loose: true}
	return []of13.Action{
		push, loose(of13.VLANVID, of13.VLANPresent|9), push, loose(of13.VLANPCP, 7), {Type: of13.ActionPopVLAN}, loose(of13.EthSrc, 1), loose(of13.EthDst, 2),
		loose(of13.IPv4Src, 3), loose(of13.IPv4Dst, 4), loose(of13.IPDSCP, 10), loose(of13.TCPSrc, 5), loose(of13.UDPSrc, 5), loose(of13.TCPDst, 6), loose(of13.UDPDst, 6),
		{Type: of13.ActionSetQueue, Number: 8}, of13.Output(3), {Type: of13.ActionSetQueue, Loose: true},
		{Type: of13.ActionOutput, Number: of13.PortController, MaxLen: 128},
	}
}

func applying(list []of13.Action) []of13.Instruction {
	return []of13.Instruction{{Type: of13.InstructionApply, Actions: list}}
}

func samplePort() of13.Port {
	return of13.Port{Number: 2, HWAddr: [6]byte{2, 0, 0, 0, 0, 1}, Name: "eth1", Config: of13.PortConfigDown, State: of13.PortStateDown, Current: 1<<11 | 1<<6, Advertised: 1 << 15, Supported: 1, Peer: 2}
}

// samples has a message of each type and kind, as they are read.
func samples() (list []of13.Message) {
	for _, kind := range []uint8{of13.TypeFeaturesRequest, of13.TypeGetConfigRequest, of13.TypeBarrierRequest, of13.TypeBarrierReply} {
		list = append(list, &of13.Plain{Kind: kind})
	}
	list = append(list, &of13.Hello{}, &of13.Echo{Data: []byte("ping")}, &of13.Echo{Reply: true, Data: []byte("pong")},
		&of13.ErrorMessage{Kind: of13.FlowModFailedOverlap.Type(), Code: of13.FlowModFailedOverlap.Code(), Data: []byte{1, 14, 0, 8, 0, 0, 0, 1}},
		&FeaturesReply{FeaturesReply: of13.FeaturesReply{DatapathID: 0xa1, Buffers: 256, Tables: 8, Capabilities: 7}, Ports: []of13.Port{samplePort(), samplePort()}},
		&of13.Config{Kind: of13.TypeGetConfigReply, MissSendBytes: 128}, &of13.Config{Kind: of13.TypeSetConfig, MissSendBytes: of13.NoMaxLen},
		&of13.PacketIn{Buffer: 7, Total: 60, Reason: of13.PacketAction, Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.InPort, 3)}}, Data: make([]byte, 60)},
		&of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController, Actions: sampleActions(), Data: make([]byte, 60)},
		&of13.PacketOut{Buffer: 9, InPort: 2, Actions: []of13.Action{of13.Output(of13.PortFlood)}},
		&of13.PortStatus{Reason: of13.PortModified, Port: samplePort()}, &of13.PortMod{Port: 2, HWAddr: [6]byte{2, 0, 0, 0, 0, 1}, Config: 1, Mask: 1, Advertise: 1 << 12},
		&of13.QueueConfigRequest{Port: 4}, &of13.QueueConfigReply{Port: 4, Queues: []of13.Queue{{Queue: 1, Port: 4, Properties: []of13.QueueProperty{{Kind: 1, Rate: 500}}}, {Queue: 2, Port: 4}}})
	for i, m := range sampleMatches() {
		list = append(list, &of13.FlowMod{Cookie: 1, Table: 0, Command: of13.FlowAdd, Idle: 5, Hard: 6, Priority: uint16(7 + i), Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
			Flags: of13.FlowSendRemoved | of13.FlowResetCounts, Match: m, Instructions: applying(sampleActions())},
			&of13.FlowRemoved{Cookie: 1, Priority: 2, Reason: of13.RemovedHard, Seconds: 3, Nanos: 4, Idle: 5, Packets: 6, Bytes: 7, Match: m})
	}
	list = append(list, &of13.FlowMod{Command: of13.FlowModify, Buffer: 3, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Adds: true},
		&of13.FlowMod{Command: of13.FlowDeleteStrict, Table: of13.TableAll, OutPort: 4, OutGroup: of13.GroupAny, Match: sampleMatches()[2]})
	return append(append(list, sampleRequests()...), sampleReplies()...)
}

func sampleRequests() []of13.Message {
	flow := of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Match: sampleMatches()[1]}
	return []of13.Message{
		&of13.MultipartRequest{Kind: of13.MultipartDesc}, &of13.MultipartRequest{Kind: of13.MultipartTable}, &of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: flow},
		&of13.MultipartRequest{Kind: of13.MultipartAggregate, Flow: flow}, &of13.MultipartRequest{Kind: of13.MultipartPort, Number: of13.PortAny},
		&of13.MultipartRequest{Kind: of13.MultipartQueue, Number: 3, Queue: of13.QueueAll},
	}
}

func sampleReplies() []of13.Message {
	life := of13.Lifetime{Seconds: 3, Nanos: 4}
	return []of13.Message{
		&of13.MultipartReply{Kind: of13.MultipartDesc, Desc: of13.Desc{Manufacturer: "a", Hardware: "b", Software: "c", Serial: "d", Datapath: "e"}},
		&of13.MultipartReply{Kind: of13.MultipartFlow, Flows: []of13.FlowStats{
			{Life: life, Priority: 2, Idle: 3, Hard: 4, Cookie: 6, Packets: 7, Bytes: 8, Match: sampleMatches()[1], Instructions: applying(sampleActions())}, {Table: 1},
		}},
		&of13.MultipartReply{Kind: of13.MultipartAggregate, Aggregate: of13.Aggregate{Packets: 1, Bytes: 2, Flows: 3}},
		&of13.MultipartReply{Kind: of13.MultipartTable, Tables: []of13.TableStats{{Table: 1, Active: 2, Lookups: 3, Matched: 4, MaxEntries: 5}}},
		&of13.MultipartReply{Kind: of13.MultipartPort, Ports: []of13.PortStats{{Port: 1, RxPackets: 2, TxPackets: 3, RxBytes: 4, TxBytes: 5, RxDropped: 6, TxDropped: 7, RxErrors: 8, TxErrors: 9, RxFrameErrors: 10, RxOverErrors: 11, RxCRCErrors: 12, Collisions: 13}}},
		&of13.MultipartReply{Kind: of13.MultipartQueue, Queues: []of13.QueueStats{{Port: 1, Queue: 2, Bytes: 3, Packets: 4, TxErrors: 5}}},
	}
}
