package vxdl

import (
	"strings"

	"sublet/vnet"
)

// protocol reads a vRouter's control plane: static, or dynamic with a protocol.
func (r *reader) protocol(e *element, f fields) (vnet.Protocol, error) {
	plane := f.one("controlPlane")
	if plane == nil {
		return vnet.ProtocolStatic, nil
	}
	inner, err := r.fields(plane, "controlPlane")
	if err != nil {
		return "", err
	}
	if layer := inner.value("layer"); layer != "" && layer != "3" {
		r.lose(inner.one("layer"), "%q is not kept: routers route IP", short(layer))
	}
	if table := inner.one("routingTable"); table != nil {
		r.lose(table, "of %s is not kept: static routes are computed", e.label())
		r.notes[len(r.notes)-1].Raw = table.raw(r.text)
	}
	kind, protocol := inner.value("type"), inner.value("routingProtocol")
	if r.aurora {
		kind, protocol = or(kind, plane.attributes["type"], "dynamic"), or(protocol, plane.attributes["routingProtocol"], "openflow")
	}
	return r.protocolOf(plane, strings.ToLower(kind), strings.ToLower(protocol)), nil
}

func or(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

func (r *reader) protocolOf(plane *element, kind, protocol string) vnet.Protocol {
	switch {
	case kind == "static", kind == "" && (protocol == "" || protocol == "static"):
		return vnet.ProtocolStatic
	case kind == "none":
		return vnet.ProtocolNone
	case protocol == "ospf", protocol == "ospf6":
		return vnet.Protocol(protocol)
	case protocol == "openflow":
		r.lose(plane, "no OpenFlow controller is attached: the table is left to the tenant (protocol none)")
		return vnet.ProtocolNone
	}
	r.lose(plane, "routing protocol %q (type %q) is not there: static routes are computed", short(protocol), short(kind))
	return vnet.ProtocolStatic
}
