package vnet

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OpenFlowOptions are what only a switch of kind SwitchOpenFlow has. Zeros are
// the defaults below.
type OpenFlowOptions struct {
	Controllers []string `json:"controllers,omitempty"` // see ControllerTarget
	Fail        string   `json:"fail,omitempty"`        // secure or standalone; "": secure
	Datapath    string   `json:"datapath,omitempty"`    // DatapathProcess or DatapathKernel; "": DatapathProcess
	Tables      int      `json:"tables,omitempty"`
	Entries     int      `json:"entries,omitempty"` // in all tables together
	Groups      int      `json:"groups,omitempty"`
	Meters      int      `json:"meters,omitempty"`
	PacketIns   int      `json:"packet_in_pps,omitempty"` // packets to controllers in a second
	Miss        string   `json:"miss,omitempty"`          // of packets that meet no entry at the start: drop or controller; "": drop
	DatapathID  uint64   `json:"datapath_id,omitempty"`   // 0: see DatapathIDOf

	MeterHold time.Duration `json:"meter_hold_ns,omitempty"` // most that packets wait which a meter would drop; 0: it drops them
	Auxiliary int           `json:"auxiliary,omitempty"`     // connections beside the main one to each controller to which the switch connects

	TLS *SwitchTLS `json:"tls,omitempty"` // for controllers over TLS; nil: none is

	Queues []Queue `json:"queues,omitempty"` // of ports

	FlowSlices []FlowSlice `json:"flow_slices,omitempty"` // with controllers of their own; none: Controllers have the whole switch
}

// What forwards the packets of a switch of kind openflow: its process, or programs
// in the kernel for flows that the process has decided about.
const (
	DatapathProcess = "process"
	DatapathKernel  = "kernel"
)

// Defaults and bounds of switches of kind openflow.
const (
	DefaultTables    = 8
	MaxTables        = 254 // OpenFlow 1.3.5, section 7.3.1
	DefaultEntries   = 10_000
	MaxEntries       = 1_000_000
	DefaultGroups    = 256
	DefaultMeters    = 256
	MaxGroups        = 65_536 // and meters
	DefaultPacketIns = 1000
	MaxPacketIns     = 100_000
	MaxControllers   = 8
	MaxMeterHold     = time.Second
	MaxAuxiliary     = 8
)

// What a switch of kind openflow takes of a host's memory: of its process, which
// holds sockets' and connections' buffers, of each auxiliary connection, and of each
// entry, group and meter.
const (
	openFlowBase      = 96 * MiB
	openFlowAuxiliary = MiB
	openFlowEntry     = 2 * KiB
)

// Memory of a switch of kind openflow is what is booked, and what the switch's process is limited to.
func (s VirtualSwitch) Memory() Bytes {
	o := s.OpenFlow()
	return openFlowBase + openFlowAuxiliary*Bytes(o.Auxiliary*len(o.Controllers)) + openFlowEntry*Bytes(o.Entries+o.Groups+o.Meters)
}

// OpenFlow gives the options with their defaults.
func (s VirtualSwitch) OpenFlow() OpenFlowOptions {
	o := s.OpenFlowOptions
	if len(o.FlowSlices) > 0 {
		o.sliced()
	}
	for _, n := range []struct {
		value *int
		def   int
	}{{&o.Tables, DefaultTables}, {&o.Entries, DefaultEntries}, {&o.Groups, DefaultGroups}, {&o.Meters, DefaultMeters}, {&o.PacketIns, DefaultPacketIns}} {
		if *n.value == 0 {
			*n.value = n.def
		}
	}
	if o.DatapathID == 0 {
		o.DatapathID = DatapathIDOf(s.Name)
	}
	return o
}

// DatapathIDOf is the datapath identifier of a switch that states none: 48 bits
// made of its name.
func DatapathIDOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()>>16 | 1
}

// ControlNode names what stands for a switch of kind openflow at its control
// links: a node of the provider's. No node of a request can have that name.
func ControlNode(vswitch string) string { return vswitch + ".control" }

// LocalLink names what joins an in-band switch of kind openflow, by its port LOCAL,
// with its ControlNode. No link of a request can have that name.
func LocalLink(vswitch string) string { return vswitch + ".local" }

// LocalInterface is the name of that port.
const LocalInterface = "local"

// OutOfBand says whether a switch has a link with control: true.
func (t Topology) OutOfBand(vswitch string) bool {
	return slices.ContainsFunc(t.Links, func(l VirtualLink) bool { return l.Control && slices.Contains(l.Ends[:], vswitch) })
}

// Controlled is the topology as addresses and routes see it: a control link ends
// at the ControlNode of its switch; that of a switch in band is a station of it.
func (t Topology) Controlled() Topology {
	out := t
	t.Nodes, t.Links = slices.Clone(t.Nodes), slices.Clone(t.Links)
	made := make(map[string]bool)
	for i, l := range t.Links {
		for end, name := range l.Ends {
			if s, ok := t.Switch(name); !l.Control || !ok || s.Kind != SwitchOpenFlow {
				continue
			}
			node := ControlNode(name)
			t.Links[i].Ends[end] = node
			if !made[node] {
				made[node] = true
				t.Nodes = append(t.Nodes, VirtualNode{Name: node})
			}
		}
	}
	for _, s := range t.Switches {
		if node := ControlNode(s.Name); s.Kind == SwitchOpenFlow && !made[node] {
			made[node] = true
			t.Nodes = append(t.Nodes, VirtualNode{Name: node})
			t.Links = append(t.Links, VirtualLink{Name: LocalLink(s.Name), Ends: [2]string{s.Name, node}, Interfaces: [2]string{LocalInterface}})
		}
	}
	if len(made) == 0 {
		return out
	}
	return t
}

// Controlled is the mapping with the hosts of ControlNodes.
func (m Mapping) Controlled(t Topology) Mapping {
	nodes := make(map[string]HostID, len(m.Nodes))
	for name, host := range m.Nodes {
		nodes[name] = host
	}
	for _, s := range t.Switches {
		if s.Kind == SwitchOpenFlow {
			nodes[ControlNode(s.Name)] = m.Nodes[s.Name]
		}
	}
	m.Nodes = nodes
	return m
}

// SecureController says whether a controller is spoken to over TLS: those of ssl
// and pssl, in whose place ControllerTarget has tcp and ptcp.
func SecureController(text string) bool {
	return strings.HasPrefix(text, "ssl:") || strings.HasPrefix(text, "pssl:")
}

// ControllerTarget takes a controller apart: "tcp:HOST:PORT" or "ssl:HOST:PORT",
// which the switch connects to, or "ptcp:PORT" or "pssl:PORT", where it listens.
// host is a node's name or an address, "" where it listens.
func ControllerTarget(text string) (host string, port uint16, ok bool) {
	kind, digits, _ := strings.Cut(text, ":")
	switch kind {
	case "tcp", "ssl":
		colon := strings.LastIndexByte(digits, ':')
		if colon <= 0 {
			return "", 0, false
		}
		host, digits = digits[:colon], digits[colon+1:]
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			host = host[1 : len(host)-1]
		}
		if _, err := netip.ParseAddr(host); err != nil && CheckName(host) != nil {
			return "", 0, false
		}
	case "ptcp", "pssl":
	default:
		return "", 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return host, uint16(n), err == nil && n > 0 && digits[0] != '0'
}

// openFlow checks what only switches of kind openflow have.
func (s VirtualSwitch) openFlow(path string) error {
	if s.Kind != SwitchOpenFlow {
		return s.noOpenFlow(path)
	}
	switch {
	case s.Ageing != 0:
		return fieldf(path+".ageing", "is for switches that learn; of kind openflow entries have timeouts: leave it out")
	case len(s.Ports) > 0:
		return fieldf(path+".ports", "is for other kinds; of kind openflow the controller says what ports do: leave it out")
	case len(s.FlowSlices) > 0 && len(s.Controllers) > 0:
		return fieldf(path+".controller", "the slices have controllers of their own: leave it out")
	case len(s.FlowSlices) > 0 && s.Fail == "standalone":
		return fieldf(path+".fail", "a switch with slices is no learning switch: leave it out, or state secure")
	case s.Auxiliary > 0 && !slices.ContainsFunc(s.Controllers, connectedTo):
		return fieldf(path+".auxiliary", "is for controllers that the switch connects to: state one by tcp or ssl in controller, or leave it out")
	case len(s.Controllers) == 0 && len(s.FlowSlices) == 0:
		return fieldf(path+".controller", "a switch of kind openflow needs a controller: state one such as tcp:NODE:6653, or ptcp:6653 to listen")
	case len(s.Controllers) > MaxControllers:
		return fieldf(path+".controller", "%d controllers are more than %d: keep fewer", len(s.Controllers), MaxControllers)
	case s.Fail != "" && s.Fail != "secure" && s.Fail != "standalone":
		return fieldf(path+".fail", "%q is not what a switch does without a controller: use secure (entries stay) or standalone (a learning switch)", s.Fail)
	case s.Miss != "" && s.Miss != "drop" && s.Miss != "controller":
		return fieldf(path+".miss", "%q is not what becomes of packets that meet no entry: use drop or controller", s.Miss)
	case s.Datapath != "" && s.Datapath != DatapathProcess && s.Datapath != DatapathKernel:
		return fieldf(path+".datapath", "%q is no datapath: use process or kernel", s.Datapath)
	}
	for i, c := range s.Controllers {
		if err := checkController(at(path+".controller", i), c); err != nil {
			return err
		}
		if slices.Contains(s.Controllers[:i], c) {
			return fieldf(at(path+".controller", i), "%q is there already: state each controller once", c)
		}
	}
	switch secure := slices.ContainsFunc(s.AllControllers(), SecureController); {
	case secure && s.TLS == nil:
		return fieldf(path+".tls", "is missing, and a controller is spoken to over TLS: state key, certificate and ca")
	case !secure && s.TLS != nil:
		return fieldf(path+".tls", "is for controllers over TLS, of which there is none: state one by ssl or pssl, or leave it out")
	case secure:
		if err := s.TLS.check(path + ".tls"); err != nil {
			return err
		}
	}
	return cmp.Or(s.checkSizes(path), s.checkQueues(path), s.flowSlices(path))
}

// connectedTo says whether the switch is what connects to a controller.
func connectedTo(controller string) bool {
	host, _, ok := ControllerTarget(controller)
	return ok && host != ""
}

func checkController(path, text string) error {
	if _, _, ok := ControllerTarget(text); !ok {
		return fieldf(path, "%q is no controller: state tcp:NODE:PORT or tcp:ADDRESS:PORT, which the switch connects to, or ptcp:PORT, where it listens; over TLS ssl and pssl", text)
	}
	if why := unreachable(text); why != "" {
		return fieldf(path, "%q cannot be reached: %s: state the address of a controller, or a node such as tcp:NODE:6653", text, why)
	}
	return nil
}

// unreachable says why no switch reaches the address of a controller, whatever its
// network is; "": it may.
func unreachable(controller string) string {
	host, _, _ := ControllerTarget(controller)
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil: // a node, or none
	case a.Zone() != "" || a.IsLinkLocalUnicast():
		return "an address of one link alone is not routed"
	case a.IsLoopback():
		return "at the switch's own address nobody else listens"
	case a.IsUnspecified() || a.Is4() && a.As4()[0] == 0:
		return "this address is nobody's"
	case a.IsMulticast() || a.Is4() && a.As4()[0] >= 240:
		return "this address is no single machine's"
	}
	return ""
}

func (s VirtualSwitch) checkSizes(path string) error {
	for _, n := range []struct {
		field            string
		value, most, def int
	}{
		{".tables", s.Tables, MaxTables, DefaultTables},
		{".entries", s.Entries, MaxEntries, DefaultEntries},
		{".groups", s.Groups, MaxGroups, DefaultGroups},
		{".meters", s.Meters, MaxGroups, DefaultMeters},
		{".packet_in_pps", s.PacketIns, MaxPacketIns, DefaultPacketIns},
	} {
		if n.value < 0 || n.value > n.most {
			return fieldf(path+n.field, "%d is not between 1 and %d: leave it out for %d", n.value, n.most, n.def)
		}
	}
	if s.MeterHold < 0 || s.MeterHold > MaxMeterHold {
		return fieldf(path+".meter_hold", "%s is not between 0s and %s: leave it out for meters that drop", FormatDuration(s.MeterHold), FormatDuration(MaxMeterHold))
	}
	if s.Auxiliary < 0 || s.Auxiliary > MaxAuxiliary {
		return fieldf(path+".auxiliary", "%d is not between 1 and %d: leave it out for none", s.Auxiliary, MaxAuxiliary)
	}
	if o := s.OpenFlow(); s.Miss == "controller" && o.Entries < o.Tables {
		return fieldf(path+".entries", "%d are fewer than %d tables, each of which begins with an entry by miss: controller: raise it", o.Entries, o.Tables)
	}
	return nil
}

// noOpenFlow refuses what a switch of another kind would not keep.
func (s VirtualSwitch) noOpenFlow(path string) error {
	for _, o := range []struct {
		field  string
		stated bool
	}{
		{".controller", len(s.Controllers) > 0}, {".fail", s.Fail != ""}, {".datapath", s.Datapath != ""}, {".tables", s.Tables != 0},
		{".entries", s.Entries != 0}, {".groups", s.Groups != 0}, {".meters", s.Meters != 0}, {".packet_in_pps", s.PacketIns != 0},
		{".miss", s.Miss != ""}, {".datapath_id", s.DatapathID != 0}, {".tls", s.TLS != nil}, {".meter_hold", s.MeterHold != 0},
		{".auxiliary", s.Auxiliary != 0},
		{".queues", len(s.Queues) > 0}, {".flow_slices", len(s.FlowSlices) > 0},
	} {
		if o.stated {
			return fieldf(path+o.field, "is for kind: openflow: state that kind, or leave it out")
		}
	}
	return nil
}

// control checks that every control link joins one switch of kind openflow to
// something else, that each such switch has one as long as it is there, that its
// controllers exist, and that no two have one datapath identifier.
func (c *checker) control(r Request) error {
	for _, name := range sortedKeys(c.links) {
		l := c.links[name]
		programmed := 0
		for _, end := range l.Ends {
			if c.switches[end].Kind == SwitchOpenFlow {
				programmed++
			}
		}
		if l.Control && programmed != 1 {
			return fieldf(c.linkPath[name]+".control", "a control link joins one switch of kind openflow to a node, router or other switch: end it so, or leave control out")
		}
	}
	owner := make(map[uint64]string)
	for _, name := range sortedKeys(c.switches) {
		s := c.switches[name]
		if s.Kind != SwitchOpenFlow {
			continue
		}
		id := s.OpenFlow().DatapathID
		if other, taken := owner[id]; taken {
			return fieldf(c.switchPath[name]+".datapath_id", "%d is that of switch %q too: state another", id, other)
		}
		owner[id] = name
		if err := c.controllers(c.switchPath[name], s); err != nil {
			return err
		}
		if err := cmp.Or(c.queues(c.switchPath[name], s, r.allStages()), c.flowLinks(c.switchPath[name], s)); err != nil {
			return err
		}
	}
	return c.controlled(r)
}

func (c *checker) controllers(path string, s VirtualSwitch) error {
	for i, x := range s.FlowSlices {
		if err := c.controllersOf(at(path+".flow_slices", i), x.Controllers); err != nil {
			return err
		}
	}
	return c.controllersOf(path, s.Controllers)
}

func (c *checker) controllersOf(path string, list []string) error {
	for i, text := range list {
		host, _, _ := ControllerTarget(text)
		if _, err := netip.ParseAddr(host); err == nil || host == "" {
			continue
		}
		if kind := c.kinds[host]; kind != "node" && kind != "router" {
			return fieldf(at(path+".controller", i), "there is no node %q: name a node or router of the request, or state an address", host)
		}
	}
	return nil
}

// controlled wants a switch of kind openflow to have a control link in every stage or
// in none: then it is in band, and connects to controllers itself.
func (c *checker) controlled(r Request) error {
	for _, name := range sortedKeys(c.switches) {
		if c.switches[name].Kind != SwitchOpenFlow {
			continue
		}
		if err := c.band(r, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) band(r Request, name string) error {
	with, without := 0, 0
	for _, top := range r.allStages() {
		if _, there := top.Switch(name); there && top.OutOfBand(name) {
			with++
		} else if there {
			without++
		}
	}
	if with > 0 && without > 0 {
		return fieldf(c.switchPath[name], "switch %q needs a link with control: true in every stage, or in none: then control is in band", name)
	}
	all := c.switches[name].AllControllers()
	if without > 0 && len(all) > MaxControllers {
		return fieldf(c.switchPath[name]+".flow_slices", "in band a switch has %d controllers at most, and these are %d: keep fewer, or add a link with control: true", MaxControllers, len(all))
	}
	for _, text := range all {
		if host, _, _ := ControllerTarget(text); without > 0 && host == "" {
			return fieldf(c.switchPath[name]+".controller", "in band switch %q connects to its controllers: state tcp:NODE:PORT, or a link with control: true", name)
		}
	}
	return nil
}
