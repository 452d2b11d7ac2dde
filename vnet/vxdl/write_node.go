package vxdl

import (
	"maps"
	"slices"
	"strconv"

	"sublet/vnet"
)

// node writes a vNode, or the vAccessPoint it was read from if it still fits.
func (w *writer) node(n vnet.VirtualNode) {
	if n.Labels[labelKind] == kindAccessPoint && n.CPU == 0 && n.Memory == 0 {
		w.inside(kindAccessPoint, func() {
			w.resource(n, []string{labelModel, labelRegion, labelKind})
			w.label(n, "region", labelRegion)
		})
		return
	}
	devices := devicesOf(n)
	own := append([]string{labelModel, labelImage, labelRegion, labelArchitecture}, devices...)
	w.inside("vNode", func() {
		w.resource(n, own)
		for _, key := range devices {
			w.label(n, "device", key)
		}
		w.label(n, "image", labelImage)
		w.label(n, "region", labelRegion)
		w.memory(n.Memory)
		w.cpu(n)
	})
}

// access writes a switch with access to an exit as an access point, which only
// Sublet's own reader will lead there again.
func (w *writer) access(s vnet.VirtualSwitch) {
	where := "switch " + s.Name
	if s.VLAN != 0 {
		w.lose(where, "its VLAN %d is not written, but one is chosen: VXDL has no word for it", s.VLAN)
	}
	if s.CPU != 0 || s.Ageing != 0 || len(s.Ports) > 0 {
		w.lose(where, "its cores, ageing and options of ports are not written: a vAccessPoint has none")
	}
	w.note(where, "exit %s is written as a tag, which only Sublet reads", s.Access)
	n := vnet.VirtualNode{Name: s.Name, Labels: s.Labels}
	w.inside(kindAccessPoint, func() {
		w.resource(n, []string{labelModel, labelRegion})
		w.tag(tagAccess, s.Access)
		w.label(n, "region", labelRegion)
	})
}

// devicesOf lists the labels that are devices, numbered without a gap.
func devicesOf(n vnet.VirtualNode) []string {
	var keys []string
	for has(n, deviceLabel(len(keys))) {
		keys = append(keys, deviceLabel(len(keys)))
	}
	return keys
}

func has(n vnet.VirtualNode, key string) bool {
	_, ok := n.Labels[key]
	return ok
}

// label writes the element a label stands for.
func (w *writer) label(n vnet.VirtualNode, name, key string) {
	if has(n, key) {
		w.leaf(name, n.Labels[key])
	}
}

func (w *writer) cpu(n vnet.VirtualNode) {
	if n.CPU == 0 && !has(n, labelArchitecture) {
		return
	}
	w.inside("cpu", func() {
		w.label(n, "architecture", labelArchitecture)
		if n.CPU > 0 {
			w.inside("cores", func() { w.leaf("simple", n.CPU.String()) })
		}
	})
}

func (w *writer) memory(size vnet.Bytes) {
	if size == 0 {
		return
	}
	w.inside("memory", func() {
		number, unit := split(size.String())
		w.leaf("unit", unit)
		w.leaf("simple", number)
	})
}

// split takes 256MiB apart.
func split(quantity string) (number, unit string) {
	i := 0
	for i < len(quantity) && quantity[i] >= '0' && quantity[i] <= '9' {
		i++
	}
	return quantity[:i], quantity[i:]
}

func (w *writer) router(n vnet.VirtualNode) {
	switch n.Protocol {
	case vnet.ProtocolBGP:
		w.lose("router "+n.Name, "that it speaks BGP is not written, but static routes: VXDL 2.0 has no autonomous systems")
		n.Protocol = vnet.ProtocolStatic
	case vnet.ProtocolISIS:
		w.lose("router "+n.Name, "that it speaks IS-IS is not written, but static routes: VXDL 2.0 does not name it")
		n.Protocol = vnet.ProtocolStatic
	}
	if n.FRR != "" {
		w.lose("router "+n.Name, "its configuration of FRR is not written: VXDL 2.0 has no words for it")
	}
	w.inside("vRouter", func() {
		if n.CPU > 0 {
			w.lose("router "+n.Name, "%s cores are not written: a vRouter has none", n.CPU)
		}
		if n.NAT != "" {
			w.lose("router "+n.Name, "its way out %s and published ports are not written: VXDL 2.0 has no translation of addresses", n.NAT)
		}
		w.resource(n, []string{labelModel, labelRegion})
		w.label(n, "region", labelRegion)
		w.memory(n.Memory)
		w.inside("controlPlane", func() {
			kind := string(n.Protocol)
			if n.Protocol.Speaks(true) != "" {
				kind = "dynamic"
			}
			w.leaf("layer", "3")
			w.leaf("type", kind)
			w.leaf("routingProtocol", string(n.Protocol))
		})
	})
}

// resource writes what all nodes share. Labels with an element of their own
// are left to the caller, except the model; the others become tags.
func (w *writer) resource(n vnet.VirtualNode, own []string) {
	where := "node " + n.Name
	w.leaf("id", n.Name)
	w.optional("location", n.Site)
	w.label(n, "model", labelModel)
	if n.Exclusive {
		w.leaf("exclusivity", strconv.FormatBool(true))
	}
	if n.Movable != "" {
		w.lose(where, "movable %s is not written: a running node stays where it is", n.Movable)
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		switch {
		case slices.Contains(own, key):
		case slices.Contains(ownTags, key):
			w.lose(where, "label %q is not written: the tag of this key has a meaning of its own", key)
		default:
			w.tag(key, n.Labels[key])
		}
	}
	if n.Join != "" {
		w.lose(where, "that a machine joins as it (%s) is not written: VXDL has no word for it", n.Join)
	}
	if n.Device != "" {
		w.lose(where, "its device %s is not written: VXDL has no word for it", n.Device)
	}
	if n.IsFunction() {
		w.lose(where, "that it is a function of chains is not written: VXDL has no word for it")
	}
	for _, field := range n.Stated() {
		w.lose(where, "%s is not written: VXDL has no words for what runs in a node", field)
	}
	if n.Host != "" {
		w.note(where, "host %s is written as a tag, which only Sublet reads", n.Host)
		w.tag(tagHost, string(n.Host))
	}
	if n.Address.IsValid() {
		w.note(where, "address %s is written as a tag, which only Sublet reads", n.Address)
		w.tag(tagAddress, n.Address.String())
	}
}

func (w *writer) tag(key, value string) {
	w.inside("tag", func() {
		w.leaf("key", key)
		w.leaf("value", value)
	})
}
