package file

import (
	"fmt"
	"slices"
	"strconv"

	"sublet/vnet"
)

// name is what a link says that ends there.
func (e linkEnd) name() string {
	if e.Access != "" {
		return string(e.Access)
	}
	return string(e.Node)
}

// accesses are the switches that ends of links with access stand for, by exit.
type accesses map[string]vnet.VirtualSwitch

// forget takes away those that a stage removes.
func (a accesses) forget(names []string) {
	for _, name := range names {
		delete(a, name)
	}
}

// into adds the switches of links that are written at path to their topology.
func (a accesses) into(top *vnet.Topology, links []link, path string) error {
	for i, l := range links {
		for j, e := range l.Ends {
			if err := a.end(top, e, index(index(path+"links", i)+".ends", j)); err != nil {
				return err
			}
		}
	}
	return nil
}

// end adds the switch of an end unless it is there.
func (a accesses) end(top *vnet.Topology, e linkEnd, path string) error {
	exit := string(e.Access)
	vlan, err := e.vlan(path)
	if err != nil || exit == "" {
		return err
	}
	if taken(*top, exit) && a[exit].Name == "" {
		return &vnet.FieldError{Path: path + ".access", Problem: fmt.Sprintf("the switch that leads to exit %s would be called %q, as something else here is: rename that, or write a switch with access: %s", exit, exit, exit)}
	}
	made, there := a[exit]
	if there && vlan != 0 && made.VLAN != vlan {
		return &vnet.FieldError{Path: path + ".vlan", Problem: "is another one than at the first end with this access: state it there, or write two switches"}
	}
	if !there {
		a[exit] = vnet.VirtualSwitch{Name: exit, Access: exit, VLAN: vlan}
		top.Switches = append(top.Switches, a[exit])
	}
	return nil
}

// vlan checks what an end states beside its name.
func (e linkEnd) vlan(path string) (uint16, error) {
	switch {
	case e.Node != "" && e.Access != "":
		return 0, &vnet.FieldError{Path: path + ".access", Problem: "node is stated too: keep one of them"}
	case e.Node == "" && e.Access == "":
		return 0, &vnet.FieldError{Path: path, Problem: "has no node: add node: ..."}
	case e.VLAN == nil:
		return 0, nil
	case e.Access == "":
		return 0, &vnet.FieldError{Path: path + ".vlan", Problem: "needs an exit: state access instead of node"}
	case *e.VLAN < 1 || *e.VLAN > vnet.MaxVLAN:
		return 0, &vnet.FieldError{Path: path + ".vlan", Problem: strconv.Itoa(*e.VLAN) + " is not between 1 and 4094: leave it out, and one is chosen"}
	}
	return uint16(*e.VLAN), nil
}

// taken says whether something of a topology that is no link has a name.
func taken(top vnet.Topology, name string) bool {
	return slices.ContainsFunc(top.Placed(), func(n vnet.VirtualNode) bool { return n.Name == name })
}
