package of13

import "net/netip"

func ipv6(s string) U128 { a := netip.MustParseAddr(s).As16(); return ReadU128(a[:]) }

func sampleMatch() Match {
	return Match{[]Field{
		Exact(InPort, 3), Exact(EthType, 0x86dd), WithMask(EthDst, U128{0, 0x020000000000}, U128{0, 0xff0000000000}),
		Exact(VLANVID, VLANPresent|77), Exact(VLANPCP, 5), Exact(IPProto, 58),
		WithMask(IPv6Src, ipv6("2001:db8::"), ipv6("ffff:ffff::")), ExactU128(IPv6Dst, ipv6("fe80::1")),
		WithMask(Metadata, U128{0, 0x1200}, U128{0, 0xff00}), Exact(ICMPv6Type, 135), ExactU128(NDTarget, ipv6("fe80::2")), Exact(NDSLL, 0x0a0b0c0d0e0f),
	}}
}

func sampleNSH() Match {
	return Match{[]Field{Exact(InPort, 3), Exact(EthType, EthTypeNSH), Exact(NSHSPI, 0x123456), Exact(NSHSI, 255), Exact(NSHTTL, 63), WithMask(NSHC1, U128{0, 0x1200}, U128{0, 0xff00}), Exact(NSHC4, 7)}}
}

func sampleActions() []Action {
	return []Action{
		{Type: ActionCopyTTLOut}, {Type: ActionCopyTTLIn}, {Type: ActionSetMPLSTTL, TTL: 9}, {Type: ActionDecMPLSTTL},
		{Type: ActionPushVLAN, EtherType: 0x88a8}, {Type: ActionPopVLAN}, {Type: ActionPushMPLS, EtherType: 0x8847}, {Type: ActionPopMPLS, EtherType: 0x0800},
		{Type: ActionSetQueue, Number: 4}, {Type: ActionGroup, Number: 7}, {Type: ActionSetNWTTL, TTL: 64}, {Type: ActionDecNWTTL},
		SetField(Exact(EthSrc, 0x020304050607)), SetField(ExactU128(IPv6Dst, ipv6("fe80::9"))), SetField(Exact(VLANPCP, 3)), SetField(Exact(PBBISID, 0x123456)),
		SetField(Exact(NSHSPI, 0x123456)), SetField(Exact(NSHSI, 9)), {Type: ActionEncap, Packet: PacketNSH, MDType: 2}, {Type: ActionEncap, Packet: PacketEthernet},
		{Type: ActionDecap, Packet: PacketNext}, {Type: ActionDecNSHTTL}, {Type: ActionPushPBB, EtherType: 0x88e7}, {Type: ActionPopPBB}, {Type: ActionExperimenter, Number: 0x2320, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		{Type: ActionOutput, Number: PortController, MaxLen: 128}, Output(2),
	}
}

func sampleInstructions() []Instruction {
	return []Instruction{
		{Type: InstructionMeter, Meter: 5}, {Type: InstructionApply, Actions: sampleActions()}, {Type: InstructionClear},
		{Type: InstructionWrite, Actions: []Action{Output(1)}}, {Type: InstructionMetadata, Metadata: 0x55, Mask: 0xff}, {Type: InstructionGoto, Table: 9},
	}
}

func sampleBuckets() []Bucket {
	return []Bucket{{Weight: 3, WatchPort: 1, WatchGroup: GroupAny, Actions: []Action{Output(1)}}, {Weight: 1, WatchPort: PortAny, WatchGroup: 2, Actions: sampleActions()}}
}

func sampleBands() []Band {
	return []Band{{Kind: BandDrop, Rate: 1000, Burst: 10}, {Kind: BandDSCPRemark, Rate: 500, Burst: 5, Precedence: 1}}
}

func samplePort() Port {
	return Port{Number: 1, HWAddr: [6]byte{2, 0, 0, 0, 0, 1}, Name: "veth0", Config: 1, State: 4, Current: 0x840, Advertised: 1, Supported: 2, Peer: 3, CurrentSpeed: 10e6, MaxSpeed: 10e6}
}

func sampleFeatures() []TableFeatures {
	return []TableFeatures{{Table: 3, Name: "classifier", MetadataMatch: ^uint64(0), MetadataMask: ^uint64(0), MaxEntries: 1000, Properties: []TableProperty{
		{PropertyInstructions, []uint32{1, 3, 4}}, {PropertyNextTables, []uint32{4, 5, 6}}, {PropertyWriteActions, []uint32{0, 22}}, {PropertyApplyActions, []uint32{0, 0xffff}},
		{PropertyMatch, []uint32{OXMHeader(InPort, false), OXMHeader(EthDst, true), OXMHeader(NSHSPI, false), OXMHeader(NSHC1, true)}}, {PropertyWildcards, []uint32{OXMHeader(InPort, false)}},
		{PropertyWriteSetField, []uint32{OXMHeader(EthSrc, false)}}, {PropertyApplySetField, nil},
	}}}
}

// samples has a message of each type and kind, as full as they get.
func samples() []Message {
	list := []Message{
		&Hello{Bitmap: 1<<4 | 1<<1}, &ErrorMessage{Kind: 1, Code: 6, Data: make([]byte, 64)}, &Echo{Data: []byte("ping")}, &Echo{Reply: true},
		&Experimenter{0x4f4e4600, 2300, []byte{0, 0, 0, 1, 0, 0, 0, 1}}, &FeaturesReply{1, 256, 254, 1, 0x4f},
		&Config{TypeGetConfigReply, 0, 128}, &Config{TypeSetConfig, 1, 0xffff},
		&PacketIn{Buffer: NoBuffer, Total: 60, Reason: PacketAction, Table: 2, Cookie: 0xabcdef, Match: Match{[]Field{Exact(InPort, 3), Exact(Metadata, 7)}}, Data: make([]byte, 60)},
		&FlowRemoved{1, 2, RemovedHard, 4, 5, 6, 7, 8, 9, 10, sampleMatch()}, &PortStatus{PortModified, samplePort()},
		&PacketOut{NoBuffer, PortController, sampleActions(), make([]byte, 60)},
		&FlowMod{Cookie: 1, CookieMask: 2, Table: 3, Command: FlowAdd, Idle: 5, Hard: 6, Priority: 7, Buffer: NoBuffer, OutPort: PortAny, OutGroup: GroupAny, Flags: FlowSendRemoved, Match: sampleMatch(), Instructions: sampleInstructions()},
		&FlowMod{Buffer: NoBuffer, OutPort: PortAny, OutGroup: GroupAny, Match: sampleNSH()},
		&GroupMod{CommandModify, GroupTypeSelect, 5, sampleBuckets()}, &PortMod{1, [6]byte{2, 0, 0, 0, 0, 1}, 1, 1, 0}, &TableMod{TableAll, 3},
		&QueueConfigRequest{PortAny}, &QueueConfigReply{PortAny, []Queue{{1, 2, []QueueProperty{{1, 100}, {2, 1000}}}, {2, 2, nil}}},
		&Role{false, RoleMaster, 77}, &Role{true, RoleSlave, 77}, &Async{TypeGetAsyncReply, [2]uint32{1, 2}, [2]uint32{3, 4}, [2]uint32{5, 6}}, &Async{TypeSetAsync, [2]uint32{7, 0}, [2]uint32{7, 7}, [2]uint32{15, 0}},
		&MeterMod{CommandAdd, MeterKBPS | MeterBurst, 9, sampleBands()},
	}
	for _, kind := range []uint8{TypeFeaturesRequest, TypeGetConfigRequest, TypeBarrierRequest, TypeBarrierReply, TypeGetAsyncRequest} {
		list = append(list, &Plain{kind})
	}
	return append(append(list, sampleRequests()...), sampleReplies()...)
}

func sampleRequests() (list []Message) {
	for _, kind := range []uint16{MultipartDesc, MultipartTable, MultipartGroupDesc, MultipartGroupFeatures, MultipartMeterFeatures, MultipartPortDesc, MultipartTableFeatures} {
		list = append(list, &MultipartRequest{Kind: kind})
	}
	for _, kind := range []uint16{MultipartPort, MultipartGroup, MultipartMeter, MultipartMeterConfig} {
		list = append(list, &MultipartRequest{Kind: kind, Number: 5})
	}
	for _, kind := range []uint16{MultipartFlow, MultipartAggregate} {
		list = append(list, &MultipartRequest{Kind: kind, Flow: FlowRequest{TableAll, PortAny, GroupAny, 1, 2, sampleMatch()}})
	}
	return append(list, &MultipartRequest{Kind: MultipartQueue, Number: 1, Queue: 2}, &MultipartRequest{Kind: MultipartTableFeatures, Flags: MultipartMore, TableFeatures: sampleFeatures()},
		&MultipartRequest{Kind: MultipartExperimenter, Experimenter: 1, ExpType: 2, Data: []byte{3}})
}

func sampleReplies() []Message {
	life := Lifetime{3, 4}
	return []Message{
		&MultipartReply{Kind: MultipartDesc, Desc: Desc{"a", "b", "c", "d", "e"}},
		&MultipartReply{Kind: MultipartFlow, Flows: []FlowStats{{1, life, 2, 3, 4, 5, 6, 7, 8, sampleMatch(), sampleInstructions(), nil}, {Table: 2}}},
		&MultipartReply{Kind: MultipartAggregate, Aggregate: Aggregate{1, 2, 3}},
		&MultipartReply{Kind: MultipartTable, Tables: []TableStats{{Table: 1, Active: 2, Lookups: 3, Matched: 4}, {Table: 5, Active: 6, Lookups: 7, Matched: 8}}},
		&MultipartReply{Kind: MultipartPort, Ports: []PortStats{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, life}}},
		&MultipartReply{Kind: MultipartQueue, Queues: []QueueStats{{1, 2, 3, 4, 5, life}}},
		&MultipartReply{Kind: MultipartGroup, Groups: []GroupStats{{1, 2, Count{3, 4}, life, []Count{{5, 6}, {7, 8}}}}},
		&MultipartReply{Kind: MultipartGroupDesc, GroupDescs: []GroupDesc{{GroupTypeAll, 2, sampleBuckets()}}},
		&MultipartReply{Kind: MultipartGroupFeatures, GroupFeatures: GroupFeatures{15, 1, [4]uint32{1, 2, 3, 4}, [4]uint32{5, 6, 7, 8}}},
		&MultipartReply{Kind: MultipartMeter, Meters: []MeterStats{{1, 2, Count{3, 4}, life, []Count{{5, 6}}}}},
		&MultipartReply{Kind: MultipartMeterConfig, MeterConfigs: []MeterConfig{{MeterKBPS, 1, sampleBands()}}},
		&MultipartReply{Kind: MultipartMeterFeatures, MeterFeatures: MeterFeatures{1, 6, 15, 8, 0}},
		&MultipartReply{Kind: MultipartTableFeatures, TableFeatures: sampleFeatures()},
		&MultipartReply{Kind: MultipartPortDesc, PortDescs: []Port{samplePort(), samplePort()}},
		&MultipartReply{Kind: MultipartExperimenter, Experimenter: 1, ExpType: 2, Data: []byte{3}},
	}
}
