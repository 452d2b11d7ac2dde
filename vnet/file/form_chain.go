package file

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// function is a node through which chains lead.
type function struct {
	Name    name              `yaml:"name" jsonschema_description:"Unique among nodes, routers, switches, links and functions."`
	Kind    string            `yaml:"kind,omitempty" jsonschema_description:"What is built in: firewall (rules), classifier (rules), limiter (rate), nat (prefix), balancer (service, nodes), mirror (to). Default: program, with run or image. vm: a virtual machine with a kernel of its own, whose disk is the image." jsonschema:"enum=firewall,enum=limiter,enum=nat,enum=balancer,enum=classifier,enum=mirror,enum=program,enum=vm"`
	Rules   []functionRule    `yaml:"rules,omitempty" jsonschema_description:"kind firewall: the first that fits decides; what fits none passes. kind classifier: packets that fit go on by another chain." jsonschema:"maxItems=64"`
	Rate    *rate             `yaml:"rate,omitempty" jsonschema_description:"kind limiter: the most that passes. Else: the most that it can do; chains that ask for more are refused."`
	Prefix  *network          `yaml:"prefix,omitempty" jsonschema_description:"kind nat: its addresses outside."`
	Service *address          `yaml:"service,omitempty" jsonschema_description:"kind balancer: the address that senders send to."`
	Nodes   []name            `yaml:"nodes,omitempty" jsonschema_description:"kind balancer: the nodes over which flows are spread." jsonschema:"maxItems=64"`
	Publish uint16            `yaml:"publish,omitempty" jsonschema_description:"kind balancer: the port of the service, in whose place nodes have port. Default: they have that of each packet." jsonschema:"minimum=1,maximum=65535"`
	Ports   *portRange        `yaml:"ports,omitempty" jsonschema_description:"kind nat: ports that it gives to senders, such as 20000-29999. Default: from 1024 on."`
	Port    uint16            `yaml:"port,omitempty" jsonschema_description:"kind balancer: the port of TCP at which nodes that live take connections. Default: they live if their kernels answer." jsonschema:"minimum=1,maximum=65535"`
	Standby name              `yaml:"standby,omitempty" jsonschema_description:"kind program: the function that packets of chains go to while this one returns none, where they say on-failure: reroute."`
	Wait    span              `yaml:"patience,omitempty" jsonschema_description:"kind program: for how long it may return nothing of what comes to it, such as 100ms, until it is dead, in chains that state on-failure. Default: 150ms. kind balancer: for how long a node may answer nothing that it is asked. Default: 1s."`
	NSH     string            `yaml:"nsh,omitempty" jsonschema_description:"kind program: aware, it gets frames of type 0x894F with the Network Service Header (RFC 8300) and returns them with the next index. Default: it gets packets as they are between the nodes." jsonschema:"enum=aware"`
	Probe   *probe            `yaml:"probe,omitempty" jsonschema_description:"kind program: a packet that it has to pass, by which it is seen to live while it passes nothing else. true: one of UDP from 192.0.2.1 to port 9 of 192.0.2.2."`
	To      name              `yaml:"to,omitempty" jsonschema_description:"kind mirror: the node that gets a copy of each packet, by an interface of its own."`
	Run     functionRun       `yaml:"run,omitempty" jsonschema_description:"kind program: the program and its arguments. Packets of chains come by eth0 and are to leave by eth1."`
	Image   string            `yaml:"image,omitempty" jsonschema_description:"kind program: image whose files the node has, and whose command it runs unless run says another." jsonschema:"maxLength=255,pattern=^[A-Za-z0-9_]"`
	Disk    size              `yaml:"disk,omitempty" jsonschema_description:"kind vm: size of the disk, such as 8GiB. Default: that of the image."`
	Restart string            `yaml:"restart,omitempty" jsonschema_description:"kind vm: whether a machine that ended is started again; on-failure: unless it was switched off from inside." jsonschema:"enum=no,enum=on-failure,enum=always,default=on-failure"`
	Files   []nodeFile        `yaml:"files,omitempty" jsonschema_description:"Files that the node finds when it begins." jsonschema:"maxItems=64"`
	Env     map[string]text   `yaml:"env,omitempty" jsonschema_description:"Variables of all commands in the node."`
	CPU     functionCPU       `yaml:"cpu,omitempty" jsonschema_description:"Cores, such as 0.5, or auto (kind program): what the rates of its chains take, measured while it runs. Default: no limit, nothing booked."`
	Profile *processing       `yaml:"profile,omitempty" jsonschema_description:"cpu auto: what packets cost it, as sublet profile measures. What the rates of its chains cost by it is booked; without it, one core."`
	Memory  size              `yaml:"memory,omitempty" jsonschema_description:"Such as 256MiB. Default: no limit, nothing booked."`
	Site    name              `yaml:"site,omitempty" jsonschema_description:"Place it on a host of this site."`
	Host    name              `yaml:"host,omitempty" jsonschema_description:"Place it on this host."`
	Absent  bool              `yaml:"absent,omitempty" jsonschema_description:"Nothing is booked for it or runs in it until a stage brings it (stages: functions). Default: no." jsonschema:"default=false"`
	Labels  map[string]string `yaml:"labels,omitempty" jsonschema_description:"Anything the tenant wants to keep with it."`
}

// functionChange is what a stage makes of a function.
type functionChange struct {
	Absent *bool `yaml:"absent" jsonschema_description:"true: nothing is booked for it and nothing runs in it from now on. false: it is there."`
}

// functionRun is one program, as its words or as a list of programs.
type functionRun []program

func (r *functionRun) short(n *yaml.Node) any {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || n.Content[0].Kind != yaml.ScalarNode {
		return nil
	}
	*r = functionRun{{}}
	return &(*r)[0].Cmd
}

// MarshalYAML writes one program as its words.
func (r functionRun) MarshalYAML() (any, error) {
	if len(r) == 1 {
		return r[0].MarshalYAML()
	}
	return []program(r), nil
}

// probe is a packet, or true for one that no node sends.
type probe struct {
	packets
	standard standardProbe
}

type standardProbe bool

// UnmarshalText reads true.
func (s *standardProbe) UnmarshalText(text []byte) error {
	if *s = string(text) == "true"; !*s {
		return fmt.Errorf("%q is not known: write true, or the packet, such as {proto: udp, dst: 10.0.0.2, dst_port: 9}", text)
	}
	return nil
}

func (p *probe) short(n *yaml.Node) any {
	if n.Kind == yaml.ScalarNode {
		return &p.standard
	}
	return &p.packets
}

// MarshalYAML writes the shortest form.
func (p probe) MarshalYAML() (any, error) {
	if p.standard {
		return true, nil
	}
	return p.packets, nil
}

// packet is what is stated.
func (p *probe) packet() vnet.Packets {
	switch {
	case p == nil:
		return vnet.Packets{}
	case bool(p.standard):
		return vnet.StandardProbe
	}
	return p.flow()
}

func probeForm(v vnet.Packets) *probe {
	switch v {
	case vnet.Packets{}:
		return nil
	case vnet.StandardProbe:
		return &probe{standard: true}
	}
	return &probe{packets: *flowForm(v)}
}

// functionCPU is an amount of cores, or that it follows the load.
type functionCPU struct {
	cores cpu
	auto  bool
}

const autoCPU = "auto"

// UnmarshalText reads cores.
func (c *functionCPU) UnmarshalText(text []byte) error {
	if c.auto = string(text) == autoCPU; c.auto {
		return nil
	}
	return c.cores.UnmarshalText(text)
}

// MarshalYAML writes cores.
func (c functionCPU) MarshalYAML() (any, error) {
	if c.auto {
		return autoCPU, nil
	}
	return c.cores.MarshalYAML()
}

// IsZero says whether none are stated.
func (c functionCPU) IsZero() bool { return c == functionCPU{} }

// processing is a profile; its members are those that sublet profile prints.
type processing struct {
	Fixed   coreSeconds `yaml:"fixed_s,omitempty" jsonschema_description:"Seconds of a core that each packet costs." jsonschema:"minimum=0,maximum=1"`
	PerByte coreSeconds `yaml:"per_byte_s,omitempty" jsonschema_description:"Seconds of a core that each byte costs." jsonschema:"minimum=0,maximum=1"`
	Packet  int         `yaml:"packet_bytes,omitempty" jsonschema_description:"Mean size of packets that is booked for. Default: 512." jsonschema:"minimum=1,maximum=65535"`
}

// coreSeconds is processor time, which is mostly a small part of a second.
type coreSeconds float64

// UnmarshalText reads numbers such as 1.9e-06.
func (s *coreSeconds) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("%q is not a number of seconds: write one such as 1.9e-06", text)
	}
	*s = coreSeconds(v)
	return nil
}

// functionRule is one of the first two, or the other ones together.
type functionRule struct {
	Match *packets `yaml:"match,omitempty" jsonschema_description:"kind classifier: packets that go on by chain."`
	Chain name     `yaml:"chain,omitempty" jsonschema_description:"kind classifier: a chain that leads through the function too."`
	Allow *packets `yaml:"allow,omitempty" jsonschema_description:"Packets that pass."`
	Deny  *packets `yaml:"deny,omitempty" jsonschema_description:"Packets that are dropped."`
}

// packets is a set of packets of IP.
type packets struct {
	Proto   string     `yaml:"proto,omitempty" jsonschema_description:"Protocol above IP. Default: any." jsonschema:"enum=tcp,enum=udp,enum=icmp"`
	Src     *stations  `yaml:"src,omitempty" jsonschema_description:"Addresses of the sender. Default: any."`
	Dst     *stations  `yaml:"dst,omitempty" jsonschema_description:"Addresses of the receiver. Default: any; of a chain, that of the node it leads to."`
	SrcPort *portRange `yaml:"src_port,omitempty" jsonschema_description:"Ports of the sender, of tcp and udp. Default: any."`
	DstPort *portRange `yaml:"dst_port,omitempty" jsonschema_description:"Ports of the receiver, of tcp and udp. Default: any."`
	DSCP    *uint8     `yaml:"dscp,omitempty" jsonschema_description:"DSCP of the packet. Default: any." jsonschema:"maximum=63"`
	VLAN    *uint16    `yaml:"vlan,omitempty" jsonschema_description:"VLAN of the tag that the sender puts on; 0: none. Default: any." jsonschema:"maximum=4094"`
}

// trafficClass is a class of traffic that routers tell from others.
type trafficClass struct {
	Name  name          `yaml:"name" jsonschema_description:"Unique among classes; links name it."`
	Match routedPackets `yaml:"match" jsonschema_description:"Its packets. Those that answer them are of the class, too."`
}

// routedPackets is a set of packets that rules of routing can tell.
type routedPackets struct {
	Proto   string     `yaml:"proto,omitempty" jsonschema_description:"Protocol above IP. Default: any." jsonschema:"enum=tcp,enum=udp,enum=icmp"`
	Src     *stations  `yaml:"src,omitempty" jsonschema_description:"Addresses of the sender. Default: any."`
	Dst     *stations  `yaml:"dst,omitempty" jsonschema_description:"Addresses of the receiver. Default: any."`
	SrcPort *portRange `yaml:"src_port,omitempty" jsonschema_description:"Ports of the sender, of tcp and udp. Default: any."`
	DstPort *portRange `yaml:"dst_port,omitempty" jsonschema_description:"Ports of the receiver, of tcp and udp. Default: any."`
}

func (f routedPackets) flow() vnet.Packets {
	return (&packets{Proto: f.Proto, Src: f.Src, Dst: f.Dst, SrcPort: f.SrcPort, DstPort: f.DstPort}).flow()
}

func trafficClassForm(c vnet.TrafficClass) trafficClass {
	f := trafficClass{Name: name(c.Name)}
	if p := flowForm(c.Match); p != nil {
		f.Match = routedPackets{Proto: p.Proto, Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort}
	}
	return f
}

// stations is an address or a prefix.
type stations netip.Prefix

// UnmarshalText reads 10.0.0.1 or 10.0.0.0/24.
func (s *stations) UnmarshalText(text []byte) error {
	if a, err := netip.ParseAddr(string(text)); err == nil && a.Zone() == "" {
		*s = stations(netip.PrefixFrom(a, a.BitLen()))
		return nil
	}
	p, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", text)
	}
	*s = stations(p)
	return nil
}

// MarshalText prints it so.
func (s stations) MarshalText() ([]byte, error) {
	if p := netip.Prefix(s); p.IsSingleIP() {
		return []byte(p.Addr().String()), nil
	}
	return []byte(netip.Prefix(s).String()), nil
}

type chain struct {
	Name      name      `yaml:"name" jsonschema_description:"Unique among chains."`
	From      name      `yaml:"from" jsonschema_description:"Node whose packets it takes."`
	To        name      `yaml:"to" jsonschema_description:"Node to which it leads."`
	Match     *packets  `yaml:"match,omitempty" jsonschema_description:"Which packets. Default: all to the address of the node it leads to. The first chain of a node that fits takes a packet."`
	Via       []name    `yaml:"via" jsonschema_description:"Functions that they pass, in order." jsonschema:"minItems=1,maxItems=16"`
	Rate      *rate     `yaml:"rate,omitempty" jsonschema_description:"What it is guaranteed, and the most that passes."`
	Share     string    `yaml:"share,omitempty" jsonschema_description:"Instead of rate: best, nothing is guaranteed." jsonschema:"enum=best"`
	Priority  int       `yaml:"priority,omitempty" jsonschema_description:"Which chains have their rates first where functions with cpu auto are short of processors: the higher. Default: 0." jsonschema:"minimum=0,maximum=7"`
	Unordered bool      `yaml:"unordered,omitempty" jsonschema_description:"The functions may be passed in any order: the one that takes least bandwidth is chosen when the network is admitted."`
	Transport string    `yaml:"transport,omitempty" jsonschema_description:"What carries it between hosts: udp (port 61440), or gpe, VXLAN-GPE (4790), by which packets may be 8 bytes shorter." jsonschema:"enum=udp,enum=gpe,default=udp"`
	Compat    uint16    `yaml:"compat,omitempty" jsonschema_description:"60001: all its packets between hosts have this source port, as other implementations have it. Default: one by the flow." jsonschema:"enum=60001"`
	Metadata  *metadata `yaml:"metadata,omitempty" jsonschema_description:"What its packets carry for functions that know NSH: words of MD type 1, or tlvs of MD type 2. Default: nothing."`
	Reverse   string    `yaml:"reverse,omitempty" jsonschema_description:"How packets come back: none, beside the chain; mirror, through its functions in opposite order, at the same rate; same, through its functions in the same order, by a chain NAME-back." jsonschema:"enum=same,enum=mirror,enum=none,default=none"`
	Paused    bool      `yaml:"paused,omitempty" jsonschema_description:"Nothing is led through it or booked for it until a stage has it go on (stages: chains). Default: no." jsonschema:"default=false"`
	OnFailure string    `yaml:"on-failure,omitempty" jsonschema_description:"What becomes of packets while a program of the chain returns nothing of what comes to it: reroute, they go to its standby; bypass, they go past it; drop, they are counted. Default: nobody looks." jsonschema:"enum=reroute,enum=bypass,enum=drop"`
}

func (f function) node(path string) (vnet.VirtualNode, error) {
	n := vnet.VirtualNode{
		Name: string(f.Name), CPU: vnet.CPU(f.CPU.cores), Memory: vnet.Bytes(f.Memory), Site: string(f.Site), Host: vnet.HostID(f.Host), Labels: some(f.Labels),
		Setup: setup{Image: f.Image, Files: f.Files, Run: f.Run, Env: f.Env, Disk: f.Disk, Restart: f.Restart}.setup(), Function: &vnet.Function{Kind: vnet.FunctionKind(f.Kind), Absent: f.Absent},
	}
	switch f.Kind {
	case "":
		n.Function.Kind = vnet.FunctionProgram
	case string(vnet.KindVM): // a program whose node is a machine
		n.Function.Kind, n.Kind = vnet.FunctionProgram, vnet.KindVM
	}
	if f.CPU.auto {
		n.Function.Auto = new(vnet.Processing)
	}
	if p := f.Profile; p != nil {
		if !f.CPU.auto {
			return n, &vnet.FieldError{Path: path + ".profile", Problem: "is of functions whose processor time follows the load: write cpu: auto, or leave it out"}
		}
		*n.Function.Auto = vnet.Processing{Fixed: float64(p.Fixed), PerByte: float64(p.PerByte), Packet: p.Packet}
		if !n.Function.Auto.Known() {
			return n, &vnet.FieldError{Path: path + ".profile", Problem: "says of no cost: state fixed_s or per_byte_s, as sublet profile prints them, or leave it out"}
		}
	}
	var err error
	if n.Function.Rate, err = f.Rate.stated(path + ".rate"); err != nil {
		return n, err
	}
	if f.Prefix != nil {
		n.Function.Prefix = netip.Prefix(*f.Prefix)
	}
	if f.Service != nil {
		n.Function.Service = netip.Addr(*f.Service)
	}
	n.Function.Nodes, n.Function.Port, n.Function.Publish = words(f.Nodes), f.Port, f.Publish
	if f.Ports != nil {
		n.Function.Ports = *f.Ports
	}
	n.Function.Probe, n.Function.NSH = f.Probe.packet(), vnet.NSHSupport(f.NSH)
	n.Function.To, n.Function.Standby, n.Function.Patience = string(f.To), string(f.Standby), time.Duration(f.Wait)
	for i, r := range f.Rules {
		if r.Chain != "" && r.Allow == nil && r.Deny == nil {
			n.Function.Rules = append(n.Function.Rules, vnet.FunctionRule{Chain: string(r.Chain), Flow: r.Match.flow()})
			continue
		}
		if r.Chain != "" || r.Match != nil || (r.Allow == nil) == (r.Deny == nil) {
			return n, &vnet.FieldError{Path: index(path+".rules", i), Problem: "states neither or both of allow and deny: state one of them"}
		}
		if r.Allow != nil {
			n.Function.Rules = append(n.Function.Rules, vnet.FunctionRule{Allow: true, Flow: r.Allow.flow()})
		} else {
			n.Function.Rules = append(n.Function.Rules, vnet.FunctionRule{Flow: r.Deny.flow()})
		}
	}
	return n, nil
}

func (f *packets) flow() (made vnet.Packets) {
	if f == nil {
		return made
	}
	made.Protocol = vnet.IPProtocol(f.Proto)
	for _, p := range []struct {
		from *stations
		to   *netip.Prefix
	}{{f.Src, &made.Src}, {f.Dst, &made.Dst}} {
		if p.from != nil {
			*p.to = netip.Prefix(*p.from)
		}
	}
	if f.SrcPort != nil {
		made.SrcPort = *f.SrcPort
	}
	if f.DstPort != nil {
		made.DstPort = *f.DstPort
	}
	made.DSCP, made.VLAN = f.DSCP, f.VLAN
	return made
}

// metadata is of one of the two types of RFC 8300.
type metadata struct {
	Words []word `yaml:"words,omitempty" jsonschema_description:"The four words of MD type 1." jsonschema:"minItems=4,maxItems=4"`
	TLVs  []tlv  `yaml:"tlvs,omitempty" jsonschema_description:"Context headers of MD type 2, 64 bytes at most: 4 for each, and its value in fours."`
}

type tlv struct {
	Class word   `yaml:"class" jsonschema_description:"Who gives the types their meaning; 0xfff6 to 0xfffe are for experiments." jsonschema:"maximum=65535"`
	Type  word   `yaml:"type" jsonschema_description:"Type in that class." jsonschema:"maximum=255"`
	Value string `yaml:"value,omitempty" jsonschema_description:"Bytes, two digits of base 16 each. Default: none."`
}

// word is a number of at most 32 bits, in base 10 or, with 0x, 16.
type word uint32

// UnmarshalText reads 7 or 0xfff6.
func (w *word) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 32)
	if err != nil {
		return fmt.Errorf("%q is not a number of at most 32 bits: write one such as 7 or 0xfff6", text)
	}
	*w = word(v)
	return nil
}

// metadata is what is stated.
func (f *metadata) metadata(path string) (made vnet.Metadata, err error) {
	if f == nil {
		return made, nil
	}
	for _, w := range f.Words {
		made.Words = append(made.Words, uint32(w))
	}
	for i, t := range f.TLVs {
		if t.Class > 0xffff || t.Type > 0xff {
			return made, &vnet.FieldError{Path: fmt.Sprintf("%s.tlvs[%d]", path, i), Problem: fmt.Sprintf("class %#x, type %#x: a class is at most 0xffff, a type 0xff", t.Class, t.Type)}
		}
		made.TLVs = append(made.TLVs, vnet.TLV{Class: uint16(t.Class), Type: uint8(t.Type), Value: t.Value})
	}
	return made, nil
}

func metadataForm(m vnet.Metadata) *metadata {
	if m.IsZero() {
		return nil
	}
	f := new(metadata)
	for _, w := range m.Words {
		f.Words = append(f.Words, word(w))
	}
	for _, t := range m.TLVs {
		f.TLVs = append(f.TLVs, tlv{Class: word(t.Class), Type: word(t.Type), Value: t.Value})
	}
	return f
}

func (f chain) chain(path string) (vnet.Chain, error) {
	c := vnet.Chain{
		Name: string(f.Name), From: string(f.From), To: string(f.To), Via: words(f.Via), Match: f.Match.flow(),
		Reverse: vnet.ChainReverse(f.Reverse), OnFailure: vnet.OnFailure(f.OnFailure), Unordered: f.Unordered, Priority: f.Priority,
		Transport: vnet.Transport(f.Transport), Compat: f.Compat, Paused: f.Paused,
	}
	var err error
	if c.Metadata, err = f.Metadata.metadata(path + ".metadata"); err != nil {
		return c, err
	}
	switch {
	case f.Share != "" && f.Share != "best":
		return c, &vnet.FieldError{Path: path + ".share", Problem: fmt.Sprintf("%q is not known: write best, or state a rate", f.Share)}
	case f.Share != "" && f.Rate != nil:
		return c, &vnet.FieldError{Path: path + ".share", Problem: "rate is stated too: keep one of them"}
	case f.Share == "" && f.Rate == nil:
		return c, &vnet.FieldError{Path: path + ".rate", Problem: "is missing: state a rate such as 100Mbit, or share: best"}
	}
	c.Rate, err = f.Rate.stated(path + ".rate")
	return c, err
}

// chainChange is what a stage makes of a chain.
type chainChange struct {
	Rate   *rate    `yaml:"rate,omitempty" jsonschema_description:"Its rate from now on. Default: as before."`
	Paused *bool    `yaml:"paused,omitempty" jsonschema_description:"true: nothing is led through it or booked for it from now on. false: it goes on. Default: as before."`
	Via    []name   `yaml:"via,omitempty" jsonschema_description:"Functions that its packets pass from now on, in order; they are stated under functions. Default: as before." jsonschema:"minItems=1,maxItems=16"`
	Match  *packets `yaml:"match,omitempty" jsonschema_description:"Which packets it takes from now on. Default: as before."`
}

func (f chainChange) change(path string) (vnet.ChainChange, error) {
	rate, err := f.Rate.stated(path + ".rate")
	return vnet.ChainChange{Rate: rate, Paused: f.Paused}, err
}

// chains adds functions and chains to a request.
func (f request) chains(r *vnet.Request) error {
	for i, one := range f.Functions {
		n, err := one.node(index("functions", i))
		if err != nil {
			return err
		}
		r.Nodes = append(r.Nodes, n)
	}
	for i, one := range f.Chains {
		c, err := one.chain(index("chains", i))
		if err != nil {
			return err
		}
		r.Chains = append(r.Chains, c)
	}
	return nil
}

func functionForm(n vnet.VirtualNode) function {
	s, fn := setupForm(n.Setup), n.Function
	f := function{
		Name: name(n.Name), Kind: cmp.Or(s.Kind, string(fn.Kind)), Rate: unlessZero[rate](fn.Rate), Image: n.Image, Files: s.Files, Run: s.Run, Env: s.Env, Disk: s.Disk, Restart: s.Restart,
		CPU: functionCPU{cores: cpu(n.CPU)}, Memory: size(n.Memory), Site: name(n.Site), Host: name(n.Host), Labels: n.Labels, Absent: fn.Absent,
	}
	if fn.Auto != nil {
		f.CPU = functionCPU{auto: true}
		if fn.Auto.Known() {
			f.Profile = &processing{Fixed: coreSeconds(fn.Auto.Fixed), PerByte: coreSeconds(fn.Auto.PerByte), Packet: fn.Auto.Packet}
		}
	}
	if fn.Prefix.IsValid() {
		f.Prefix = (*network)(&fn.Prefix)
	}
	if fn.Service.IsValid() {
		f.Service = (*address)(&fn.Service)
	}
	f.Nodes, f.Port, f.Publish = names(fn.Nodes), fn.Port, fn.Publish
	if fn.Ports != (portRange{}) {
		f.Ports = &fn.Ports
	}
	f.Probe, f.NSH = probeForm(fn.Probe), string(fn.NSH)
	f.To, f.Standby, f.Wait = name(fn.To), name(fn.Standby), span(fn.Patience)
	for _, r := range fn.Rules {
		one := flowForm(r.Flow)
		if one == nil {
			one = new(packets)
		}
		if r.Chain != "" {
			f.Rules = append(f.Rules, functionRule{Match: one, Chain: name(r.Chain)})
		} else if r.Allow {
			f.Rules = append(f.Rules, functionRule{Allow: one})
		} else {
			f.Rules = append(f.Rules, functionRule{Deny: one})
		}
	}
	return f
}

// flowForm is nil for all packets.
func flowForm(v vnet.Packets) *packets {
	if v == (vnet.Packets{}) {
		return nil
	}
	f := &packets{Proto: string(v.Protocol), DSCP: v.DSCP, VLAN: v.VLAN}
	if v.Src.IsValid() {
		f.Src = (*stations)(&v.Src)
	}
	if v.Dst.IsValid() {
		f.Dst = (*stations)(&v.Dst)
	}
	if v.SrcPort != (portRange{}) {
		f.SrcPort = &v.SrcPort
	}
	if v.DstPort != (portRange{}) {
		f.DstPort = &v.DstPort
	}
	return f
}

func chainForm(c vnet.Chain) chain {
	f := chain{
		Name: name(c.Name), From: name(c.From), To: name(c.To), Match: flowForm(c.Match), Via: names(c.Via),
		Rate: unlessZero[rate](c.Rate), Reverse: string(c.Reverse), OnFailure: string(c.OnFailure), Unordered: c.Unordered, Priority: c.Priority,
		Transport: string(c.Transport), Compat: c.Compat, Metadata: metadataForm(c.Metadata), Paused: c.Paused,
	}
	if c.Rate == 0 {
		f.Share = "best"
	}
	return f
}
