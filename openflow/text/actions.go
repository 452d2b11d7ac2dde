package text

import (
	"cmp"
	"fmt"
	"strings"

	"sublet/openflow/of13"
)

// Actions writes what an entry does with a packet, in the order in which it is done.
func Actions(list []of13.Instruction) string {
	var words []string
	for _, kind := range []uint16{of13.InstructionMeter, of13.InstructionApply, of13.InstructionClear, of13.InstructionWrite, of13.InstructionMetadata, of13.InstructionGoto} {
		for _, in := range list {
			if in.Type == kind {
				words = append(words, instruction(in)...)
			}
		}
	}
	if len(words) == 0 {
		return "drop"
	}
	return strings.Join(words, ",")
}

func instruction(in of13.Instruction) []string {
	switch in.Type {
	case of13.InstructionMeter:
		return []string{fmt.Sprintf("meter:%d", in.Meter)}
	case of13.InstructionApply:
		return actions(in.Actions)
	case of13.InstructionClear:
		return []string{"clear_actions"}
	case of13.InstructionWrite:
		words := actions(in.Actions)
		if len(words) == 0 {
			words = []string{"drop"}
		}
		return []string{"write_actions(" + strings.Join(words, ",") + ")"}
	case of13.InstructionMetadata:
		text := fmt.Sprintf("write_metadata:0x%x", in.Metadata)
		if in.Mask != ^uint64(0) {
			text += fmt.Sprintf("/0x%x", in.Mask)
		}
		return []string{text}
	}
	return []string{fmt.Sprintf("goto_table:%d", in.Table)}
}

func actions(list []of13.Action) (words []string) {
	for _, a := range list {
		words = append(words, action(a))
	}
	return words
}

// plain actions have no argument.
var plain = map[uint16]string{
	of13.ActionCopyTTLOut: "copy_ttl_out", of13.ActionCopyTTLIn: "copy_ttl_in", of13.ActionDecMPLSTTL: "dec_mpls_ttl",
	of13.ActionPopVLAN: "pop_vlan", of13.ActionDecNWTTL: "dec_ttl", of13.ActionPopPBB: "pop_pbb", of13.ActionDecNSHTTL: "dec_nsh_ttl",
}

func action(a of13.Action) string {
	switch a.Type {
	case of13.ActionOutput:
		return output(a)
	case of13.ActionGroup:
		return fmt.Sprintf("group:%d", a.Number)
	case of13.ActionSetQueue:
		return fmt.Sprintf("set_queue:%d", a.Number)
	case of13.ActionPushVLAN:
		return fmt.Sprintf("push_vlan:0x%04x", a.EtherType)
	case of13.ActionPushMPLS:
		return fmt.Sprintf("push_mpls:0x%04x", a.EtherType)
	case of13.ActionPushPBB:
		return fmt.Sprintf("push_pbb:0x%04x", a.EtherType)
	case of13.ActionPopMPLS:
		return fmt.Sprintf("pop_mpls:0x%04x", a.EtherType)
	case of13.ActionSetMPLSTTL:
		return fmt.Sprintf("set_mpls_ttl(%d)", a.TTL)
	case of13.ActionSetNWTTL:
		return fmt.Sprintf("mod_nw_ttl:%d", a.TTL)
	case of13.ActionSetField:
		return setField(a.Field)
	case of13.ActionEncap:
		return encap(a)
	case of13.ActionDecap:
		if a.Packet != of13.PacketNext {
			return fmt.Sprintf("decap(packet_type(ns=%d,type=0x%x))", a.Packet>>16, a.Packet&0xffff)
		}
		return "decap()"
	case of13.ActionExperimenter:
		return fmt.Sprintf("experimenter:0x%x", a.Number)
	}
	return plain[a.Type]
}

func encap(a of13.Action) string {
	if a.Packet == of13.PacketNSH {
		return fmt.Sprintf("encap(nsh(md_type=%d))", a.MDType)
	}
	return "encap(ethernet)"
}

// setNames are those of fields that are set, where ovs-ofctl's differ from the
// specification's.
var setNames = map[of13.FieldID]string{
	of13.TunnelID: "tun_id", of13.IPv4Src: "ip_src", of13.IPv4Dst: "ip_dst", of13.IPECN: "nw_ecn", of13.IPv6FLabel: "ipv6_label",
	of13.ICMPv4Type: "icmp_type", of13.ICMPv4Code: "icmp_code", of13.NDTarget: "nd_target", of13.NDSLL: "nd_sll", of13.NDTLL: "nd_tll",
}

// setField has VLAN identifiers with the bit that says that there is a tag.
func setField(f of13.Field) string {
	text := value(f.ID, f.Value)
	switch f.ID {
	case of13.VLANVID, of13.IPDSCP:
		text = fmt.Sprint(f.Value.Lo)
	}
	return "set_field:" + text + "->" + cmp.Or(setNames[f.ID], of13.Fields[f.ID].Name)
}

// reserved ports by number.
var reserved = map[uint32]string{
	of13.PortInPort: "IN_PORT", of13.PortTable: "TABLE", of13.PortNormal: "NORMAL", of13.PortFlood: "FLOOD", of13.PortAll: "ALL", of13.PortLocal: "LOCAL",
}

func output(a of13.Action) string {
	if a.Number == of13.PortController {
		return fmt.Sprintf("CONTROLLER:%d", a.MaxLen)
	}
	if name := reserved[a.Number]; name != "" {
		return name
	}
	return fmt.Sprintf("output:%d", a.Number)
}

// port is a port's number, or its name if it is reserved.
func port(number uint32) string { return cmp.Or(reserved[number], fmt.Sprint(number)) }

// Flags writes those of an entry, each with a space behind it.
func Flags(flags uint16) (text string) {
	for _, f := range []struct {
		bit  uint16
		name string
	}{
		{of13.FlowSendRemoved, "send_flow_rem"}, {of13.FlowCheckOverlap, "check_overlap"}, {of13.FlowResetCounts, "reset_counts"},
		{of13.FlowNoPacketCount, "no_packet_counts"}, {of13.FlowNoByteCount, "no_byte_counts"},
	} {
		if flags&f.bit != 0 {
			text += f.name + " "
		}
	}
	return text
}
