package vxdl

import (
	"fmt"
	"maps"
	"slices"

	"sublet/vnet"
)

// group is what a vLink means by an id: one node, or a member of each array.
type group struct {
	element *element
	array   string   // id of the vArray, "" outside
	names   []string // empty: the array has several resources
}

// resources reads nodes and arrays, then links, which may stand before them.
func (r *reader) resources(e *element, f fields) error {
	var links []func() error
	for _, c := range e.children {
		if c.space != r.space() {
			continue
		}
		var err error
		switch c.name {
		case "vNode", "vRouter", "vAccessPoint", "vStorage":
			_, err = r.resource(c, array{})
		case "vArray":
			err = r.array(c, &links)
		case "vLink":
			links = append(links, func() error { return r.link(c, array{}) })
		}
		if err != nil {
			return err
		}
	}
	if location := f.one("location"); location != nil {
		r.everywhere(location)
	}
	for _, read := range links {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// everywhere gives the infrastructure's location to what states none.
func (r *reader) everywhere(location *element) {
	site := r.valid(location, "location", location.value())
	for _, list := range [][]vnet.VirtualNode{r.request.Nodes, r.request.Routers} {
		for i := range list {
			if list[i].Site == "" {
				list[i].Site = site
			}
		}
	}
	r.note(location, "%q is given to every node that states no location", site)
}

// declare gives an id its meaning, once. An array and its only resource may
// share theirs: they mean the same.
func (r *reader) declare(id string, g group) error {
	if first, ok := r.groups[id]; ok && (g.array != id || first.array != id) {
		return r.fail(g.element, "the id stands twice, first on line %d: choose another", first.element.line)
	}
	r.groups[id] = g
	return nil
}

// resource reads one resource and appends it once for each member of a. It
// returns the names given.
func (r *reader) resource(e *element, a array) ([]string, error) {
	f, err := r.fields(e, e.name)
	if err != nil {
		return nil, err
	}
	id, err := r.id(e, f)
	if err != nil {
		return nil, err
	}
	made, err := r.node(e, f)
	if err != nil {
		return nil, err
	}
	if made.Site == "" {
		made.Site = a.site
	}
	ids := a.names(id)
	if total := len(r.request.Nodes) + len(r.request.Routers) + len(r.request.Switches) + len(ids); total > vnet.MaxNodes {
		return nil, r.fail(e, "the document has more than %d nodes and routers: split it", vnet.MaxNodes)
	}
	g := group{element: e, array: a.id}
	for _, id := range ids {
		made.Name, made.Labels = r.claim(e, id), maps.Clone(made.Labels)
		r.members[made.Name] = true
		g.names = append(g.names, made.Name)
		r.append(e, made)
	}
	return g.names, r.declare(id, g)
}

// append adds a node to its list and remembers where it was written.
func (r *reader) append(e *element, n vnet.VirtualNode) {
	if exit, ok := n.Labels[tagAccess]; ok && e.name == kindAccessPoint {
		r.places[fmt.Sprintf("switches[%d]", len(r.request.Switches))] = e
		r.request.Switches = append(r.request.Switches, r.access(e, n, exit))
		return
	}
	list, name := &r.request.Nodes, "nodes"
	if e.name == "vRouter" {
		list, name = &r.request.Routers, "routers"
	}
	r.places[fmt.Sprintf("%s[%d]", name, len(*list))] = e
	*list = append(*list, n)
}

// access is the switch that an access point becomes which says by which exit.
func (r *reader) access(e *element, n vnet.VirtualNode, exit string) vnet.VirtualSwitch {
	if n.Site != "" || n.Host != "" || n.Address.IsValid() || n.Exclusive || n.Memory != 0 {
		r.lose(e, "location, host, address, exclusivity and memory are not kept: the exit says where it is")
	}
	return accessTo(n, r.valid(e, "exit", exit))
}

func accessTo(n vnet.VirtualNode, exit string) vnet.VirtualSwitch {
	s := vnet.VirtualSwitch{Name: n.Name, Labels: maps.Clone(n.Labels), Access: exit}
	for _, key := range []string{tagAccess, labelKind} {
		delete(s.Labels, key)
	}
	s.Labels = someLabels(s.Labels)
	return s
}

// Lead makes an access point that was read a switch with access to an exit. Links
// there that state no rate get one.
func Lead(request *vnet.Request, point, exit string, rate vnet.Rate) error {
	i := slices.IndexFunc(request.Nodes, func(n vnet.VirtualNode) bool {
		return n.Name == point && n.Labels[labelKind] == kindAccessPoint
	})
	if i < 0 {
		return fmt.Errorf("there is no vAccessPoint %q: name one of the document", point)
	}
	request.Switches = append(request.Switches, accessTo(request.Nodes[i], exit))
	request.Nodes = slices.Delete(slices.Clone(request.Nodes), i, i+1)
	request.Links = slices.Clone(request.Links)
	for j := range request.Links {
		l := &request.Links[j]
		for d := range l.Bandwidth {
			if b := &l.Bandwidth[d]; slices.Contains(l.Ends[:], point) && b.Min == 0 {
				*b = vnet.Bandwidth{Min: rate, Max: max(rate, b.Max)}
			}
		}
	}
	request.Fill()
	return request.Check()
}

// node reads a resource that becomes a node or router.
func (r *reader) node(e *element, f fields) (vnet.VirtualNode, error) {
	var n vnet.VirtualNode
	var err error
	if e.name == "vStorage" {
		return n, r.fail(e, "storage is not leased by Sublet: remove it and its links")
	}
	if n.Labels, n.Exclusive, err = r.common(e, f); err != nil {
		return n, err
	}
	if location := f.value("location"); location != "" {
		n.Site = r.valid(e, "location", location)
	}
	memory, err := r.reserved(f.one("memory"), byteUnits)
	if err != nil {
		return n, err
	}
	n.Memory = vnet.Bytes(memory)
	switch e.name {
	case "vNode":
		err = r.computing(&n, e, f)
	case "vRouter":
		n.Protocol, err = r.protocol(e, f)
	case "vAccessPoint":
		err = r.accessPoint(&n, e, f)
	}
	if err != nil {
		return n, err
	}
	return n, r.placed(e, &n)
}

// computing reads what only a vNode has.
func (r *reader) computing(n *vnet.VirtualNode, e *element, f fields) error {
	for _, c := range f["interface"] {
		r.lose(c, "names and addresses of interfaces are not kept: they are eth0, eth1, ... in order of links")
	}
	for _, c := range f["software_list"] {
		r.lose(c, "software is not installed")
	}
	if storage := f.one("storage"); storage != nil {
		if _, err := r.capacity(storage, byteUnits); err != nil {
			return err
		}
		r.lose(storage, "of %s is not leased", e.label())
	}
	cpu := f.one("cpu")
	if cpu == nil {
		return nil
	}
	inner, err := r.fields(cpu, "cpu")
	if err != nil {
		return err
	}
	if frequency := inner.one("frequency"); frequency != nil {
		if _, err := r.capacity(frequency, clockUnits); err != nil {
			return err
		}
		r.lose(frequency, "of %s is not kept: CPU is counted in cores", e.label())
	}
	r.keep(n.Labels, inner.one("architecture"), labelArchitecture)
	cores, err := r.reserved(inner.one("cores"), coreUnits)
	n.CPU = vnet.CPU(cores)
	return err
}

// accessPoint becomes a node, or with the tag of an exit a switch; what it would do
// to packets is not built.
func (r *reader) accessPoint(n *vnet.VirtualNode, e *element, f fields) error {
	if balancer := f.one("loadBalancer"); balancer != nil {
		return r.fail(balancer, "this element does not say which nodes it is over: remove it, and state a function of kind balancer in the native form (sublet convert)")
	}
	for _, rule := range append(f["nat"], f["masquerade"]...) {
		r.lose(rule, "of %s is not built: it becomes a plain node, in which you may set it up, or a switch that leads to an exit (--access ID=EXIT:RATE)", e.label())
		r.notes[len(r.notes)-1].Raw = rule.raw(r.text)
	}
	r.label(n.Labels, e, labelKind, kindAccessPoint)
	return nil
}
