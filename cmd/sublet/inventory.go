package main

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// inventory is one of Ansible's, in the form of its plugin yaml.
type inventory struct {
	All inventoryRoot `yaml:"all"`
}

type inventoryRoot struct {
	Vars     map[string]any            `yaml:"vars"`
	Children map[string]inventoryGroup `yaml:"children,omitempty"`
}

type inventoryGroup struct {
	Hosts map[string]inventoryHost `yaml:"hosts"`
}

// inventoryHost is a node; it is written once, groups but the first only name it.
type inventoryHost struct {
	Node      string            `yaml:"sublet_node,omitempty"` // as sublet exec names it
	Host      vnet.HostID       `yaml:"sublet_host,omitempty"` // on which it is
	Addresses []string          `yaml:"sublet_addresses,flow,omitempty"`
	Labels    map[string]string `yaml:"sublet_labels,omitempty"`
}

// groupLabel is the label of a node that names a group of the inventory, as
// containerlab has it.
const groupLabel = "ansible-group"

// formatInventory lists the nodes of a network for Ansible, whose connections
// tools/ansible/sublet.py makes. Ways out are left out: no command runs there.
func formatInventory(l vnet.Lease) ([]byte, []vnet.Note, error) {
	children := make(map[string]inventoryGroup)
	join := func(group, name string, h inventoryHost) {
		if children[group].Hosts == nil {
			children[group] = inventoryGroup{make(map[string]inventoryHost)}
		}
		children[group].Hosts[name] = h
	}
	add := func(group string, n vnet.VirtualNode) {
		if n.NAT != "" || n.Join != "" {
			return
		}
		h := inventoryHost{Node: strings.TrimPrefix(l.ID().String(), "/") + "/" + n.Name, Host: l.Mapping.Nodes[n.Name], Labels: n.Labels}
		for _, a := range l.AddressesOf(n.Name) {
			if a.IsValid() {
				h.Addresses = append(h.Addresses, a.String())
			}
		}
		join(group, n.Name, h)
		if named := n.Labels[groupLabel]; named != "" && named != group {
			join(strings.ReplaceAll(named, "-", "_"), n.Name, inventoryHost{})
		}
	}
	top := l.Topology()
	for _, n := range top.Nodes {
		add("nodes", n)
	}
	for _, n := range top.Routers {
		add("routers", n)
	}
	text, err := yaml.Marshal(inventory{inventoryRoot{map[string]any{"ansible_connection": "sublet", "ansible_pipelining": true, "sublet_network": string(l.Request.Network)}, children}})
	return text, nil, err
}
