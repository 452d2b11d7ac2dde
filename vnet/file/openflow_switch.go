package file

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// fabricSwitch is a switch of the substrate: its name alone, or more of one that
// speaks OpenFlow.
type fabricSwitch struct {
	Name     name                       `yaml:"name" jsonschema_description:"Unique among hosts and switches."`
	OpenFlow *openFlow                  `yaml:"openflow,omitempty" jsonschema_description:"It speaks OpenFlow 1.3, and the server controls it: the links of leases that pass it have entries and meters, or queues, there."`
	Ports    map[string]int             `yaml:"ports,omitempty" jsonschema_description:"By link that ends at it: the OpenFlow number of its port."`
	Entries  int                        `yaml:"entries,omitempty" jsonschema_description:"Entries of its first table that the server may have: 2 for each link of a lease that passes it, and 1." jsonschema:"minimum=3,maximum=1048576"`
	Meters   int                        `yaml:"meters,omitempty" jsonschema_description:"Meters that the server may have, as many as entries." jsonschema:"minimum=3,maximum=4096"`
	Queues   map[string]map[string]rate `yaml:"queues,omitempty" jsonschema_description:"Instead of meters, by link that ends at it, by number from 1: the rate of a queue of its port, which is guaranteed there and the most. Its operator has set it up. A link of a lease takes the smallest that holds its max."`
	SlowPath *slowPath                  `yaml:"slow-path,omitempty" jsonschema_description:"What it does in software."`
}

// openFlow is how a switch is reached.
type openFlow struct {
	Connect    switchAddress   `yaml:"connect,omitempty" jsonschema_description:"Where it listens for controllers, such as tcp:192.0.2.1:6653."`
	Listen     switchAddress   `yaml:"listen,omitempty" jsonschema_description:"Instead of connect: the server's address to which it connects, such as 192.0.2.9:6653. Several switches may have one."`
	DatapathID vnet.DatapathID `yaml:"datapath_id" jsonschema_description:"Its identifier, in hexadecimal digits."`
	TLS        *fabricTLS      `yaml:"tls,omitempty" jsonschema_description:"The connection is over TLS, whoever connects to whom. Default: it is plain."`
}

// fabricTLS are files of the server's machine.
type fabricTLS struct {
	Certificate string `yaml:"certificate" jsonschema_description:"The server's certificate, a PEM file on its machine, such as /etc/sublet/switches/certificate.pem." jsonschema:"pattern=^/"`
	Key         string `yaml:"key" jsonschema_description:"The certificate's key, a PEM file there." jsonschema:"pattern=^/"`
	CA          string `yaml:"ca" jsonschema_description:"Certificates of authorities, a PEM file there; one of them has signed the switch's certificate, whatever name is in it." jsonschema:"pattern=^/"`
}

// slowPath is what leaves the fast path.
type slowPath struct {
	Actions []string `yaml:"actions" jsonschema_description:"That lead packets there. Entries of leases have meter or set_queue, and output; what belongs to no lease has normal, and meter where leases have." jsonschema:"enum=meter,enum=output,enum=normal,enum=set_queue"`
	PPS     int      `yaml:"pps" jsonschema_description:"Packets per second that it carries there, of all links together. Admission counts packets of 900 bytes." jsonschema:"minimum=1,maximum=1000000000"`
	Latency span     `yaml:"latency,omitempty" jsonschema_description:"What such a packet takes there, such as 200us."`
}

// switchAddress is where an OpenFlow connection ends.
type switchAddress netip.AddrPort

// UnmarshalText reads an address with its port, tcp: in front or not.
func (a *switchAddress) UnmarshalText(text []byte) error {
	at, err := netip.ParseAddrPort(strings.TrimPrefix(string(text), "tcp:"))
	if err != nil && strings.HasPrefix(string(text), "ssl:") {
		return fmt.Errorf("%q: write tcp: in place of ssl:, and tls with the files beside it", text)
	}
	if err != nil {
		return fmt.Errorf("%q is no address of an OpenFlow connection: write one such as tcp:192.0.2.1:6653", text)
	}
	*a = switchAddress(at)
	return nil
}

// MarshalText writes it with tcp: in front.
func (a switchAddress) MarshalText() ([]byte, error) {
	return []byte("tcp:" + netip.AddrPort(a).String()), nil
}

// IsZero says that it is not stated.
func (a switchAddress) IsZero() bool { return a == switchAddress{} }

func (f *fabricSwitch) short(n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	return &f.Name
}

// MarshalYAML writes the name alone where that is all.
func (f fabricSwitch) MarshalYAML() (any, error) {
	if f.OpenFlow == nil {
		return f.Name, nil
	}
	type whole fabricSwitch
	return whole(f), nil
}

// openFlow is what vnet knows of a switch that speaks OpenFlow; false: it does not.
func (f fabricSwitch) openFlow(path string) (vnet.OpenFlowSwitch, bool, error) {
	o := vnet.OpenFlowSwitch{Name: string(f.Name), Entries: f.Entries, Meters: f.Meters}
	if f.OpenFlow == nil {
		if f.Ports != nil || f.Entries != 0 || f.Meters != 0 || f.Queues != nil || f.SlowPath != nil {
			return o, false, &vnet.FieldError{Path: path, Problem: "only a switch that speaks OpenFlow has ports, entries, meters, queues and a slow path: state openflow"}
		}
		return o, false, nil
	}
	o.Connect, o.Listen, o.DatapathID = netip.AddrPort(f.OpenFlow.Connect), netip.AddrPort(f.OpenFlow.Listen), f.OpenFlow.DatapathID
	if t := f.OpenFlow.TLS; t != nil {
		o.TLS = &vnet.SwitchFiles{Certificate: t.Certificate, Key: t.Key, CA: t.CA}
	}
	for link, port := range f.Ports {
		if o.Ports == nil {
			o.Ports = make(map[string]uint32, len(f.Ports))
		}
		o.Ports[link] = uint32(min(max(port, 0), 1<<32-1))
	}
	var err error
	if o.Queues, err = f.queues(path + ".queues"); err != nil {
		return o, false, err
	}
	if f.SlowPath != nil {
		o.SlowPath = vnet.SlowPath{Actions: f.SlowPath.Actions, PPS: f.SlowPath.PPS, Latency: time.Duration(f.SlowPath.Latency)}
	}
	return o, true, nil
}

// queues lists those of all ports by link and number.
func (f fabricSwitch) queues(path string) (list []vnet.SwitchQueue, err error) {
	for _, link := range slices.Sorted(maps.Keys(f.Queues)) {
		for text, r := range f.Queues[link] {
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return nil, &vnet.FieldError{Path: path + "." + link, Problem: fmt.Sprintf("%q is no number of a queue: write one such as 1", text)}
			}
			list = append(list, vnet.SwitchQueue{Link: link, Queue: uint32(n), Rate: vnet.Rate(r)})
		}
	}
	slices.SortFunc(list, func(a, b vnet.SwitchQueue) int {
		return cmp.Or(strings.Compare(a.Link, b.Link), cmp.Compare(a.Queue, b.Queue))
	})
	return list, nil
}

func fabricSwitchForm(s vnet.Substrate, called string) fabricSwitch {
	f := fabricSwitch{Name: name(called)}
	o, speaks := s.OpenFlowOf(called)
	if !speaks {
		return f
	}
	f.OpenFlow = &openFlow{Connect: switchAddress(o.Connect), Listen: switchAddress(o.Listen), DatapathID: o.DatapathID}
	if t := o.TLS; t != nil {
		f.OpenFlow.TLS = &fabricTLS{Certificate: t.Certificate, Key: t.Key, CA: t.CA}
	}
	f.Entries, f.Meters = o.Entries, o.Meters
	for link, port := range o.Ports {
		if f.Ports == nil {
			f.Ports = make(map[string]int, len(o.Ports))
		}
		f.Ports[link] = int(port)
	}
	for _, q := range o.Queues {
		if f.Queues == nil {
			f.Queues = make(map[string]map[string]rate)
		}
		if f.Queues[q.Link] == nil {
			f.Queues[q.Link] = make(map[string]rate)
		}
		f.Queues[q.Link][strconv.Itoa(int(q.Queue))] = rate(q.Rate)
	}
	if p := o.SlowPath; len(p.Actions) > 0 {
		f.SlowPath = &slowPath{Actions: p.Actions, PPS: p.PPS, Latency: span(p.Latency)}
	}
	return f
}
