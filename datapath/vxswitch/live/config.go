package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/vnet"
	"sublet/vnet/file"
	"sublet/vxswitch"
	"sublet/vxswitch/lookup"
	"sublet/vxswitch/sched"
)

// Config is a hosting switch as it is written.
type Config struct {
	Crosspoint size            `yaml:"crosspoint,omitempty" json:"crosspoint"`
	Sharing    string          `yaml:"sharing,omitempty" json:"sharing"`
	CPU        *int            `yaml:"cpu,omitempty" json:"cpu,omitempty"`
	Spin       span            `yaml:"spin,omitempty" json:"spin,omitempty"`
	Ports      []PortConfig    `yaml:"ports" json:"ports"`
	Switches   []VirtualConfig `yaml:"virtual_switches,omitempty" json:"virtual_switches,omitempty"`
}

// PortConfig is a real port: a TAP device that is made, or a device to open by
// a packet socket or by AF_XDP sockets.
type PortConfig struct {
	Name      string `yaml:"name" json:"name"`
	Tap       string `yaml:"tap,omitempty" json:"tap,omitempty"`             // device to make
	Packet    string `yaml:"packet,omitempty" json:"packet,omitempty"`       // device to open by a packet socket
	XDP       string `yaml:"xdp,omitempty" json:"xdp,omitempty"`             // device to open by AF_XDP sockets
	Namespace string `yaml:"namespace,omitempty" json:"namespace,omitempty"` // file of the device's; "": this process's
	Address   string `yaml:"address,omitempty" json:"address,omitempty"`     // MAC of the TAP device
	MTU       int    `yaml:"mtu,omitempty" json:"mtu,omitempty"`             // of the TAP device
	Rate      rate   `yaml:"rate,omitempty" json:"rate,omitempty"`
	Scheduler string `yaml:"scheduler,omitempty" json:"scheduler,omitempty"`
	Shared    bool   `yaml:"uncapped,omitempty" json:"uncapped,omitempty"` // switches may use what others leave
}

// VirtualConfig is a virtual switch.
type VirtualConfig struct {
	Name      string              `yaml:"name" json:"name"`
	Ports     []VirtualPortConfig `yaml:"ports" json:"ports"`
	Buffer    size                `yaml:"buffer,omitempty" json:"buffer,omitempty"`
	Lend      fraction            `yaml:"lend,omitempty" json:"lend,omitempty"`
	Manager   string              `yaml:"manager,omitempty" json:"manager,omitempty"`
	Scheduler string              `yaml:"scheduler,omitempty" json:"scheduler,omitempty"`
	Cross     []CrossConfig       `yaml:"crosspoints,omitempty" json:"crosspoints,omitempty"` // those that differ
	Blocked   [][2]string         `yaml:"blocked,omitempty" json:"blocked,omitempty"`         // [from, to] by port name
	Lookup    string              `yaml:"lookup,omitempty" json:"lookup,omitempty"`           // learning, static, prefix or classifier
	Table     []RowConfig         `yaml:"table,omitempty" json:"table,omitempty"`             // that it reads
	Ageing    span                `yaml:"ageing,omitempty" json:"ageing,omitempty"`
	MACs      int                 `yaml:"macs,omitempty" json:"macs,omitempty"` // most that are learned
	Stations  []StationConfig     `yaml:"stations,omitempty" json:"stations,omitempty"`
}

// StationConfig is who is known to be behind a port: nothing for it is flooded.
type StationConfig struct {
	MAC     string `yaml:"mac" json:"mac"`
	Address string `yaml:"address,omitempty" json:"address,omitempty"` // questions for it go to this port alone
	Port    string `yaml:"port" json:"port"`
}

// VirtualPortConfig is a port of a virtual switch.
type VirtualPortConfig struct {
	Port     string      `yaml:"port" json:"port"`
	In       rate        `yaml:"in" json:"in"`
	Out      rate        `yaml:"out" json:"out"`
	Quantum  size        `yaml:"quantum,omitempty" json:"quantum,omitempty"`
	Priority int         `yaml:"priority,omitempty" json:"priority,omitempty"`
	Own      string      `yaml:"scheduler,omitempty" json:"scheduler,omitempty"` // of this output, among inputs; "": the switch's
	Open     bool        `yaml:"open,omitempty" json:"open,omitempty"`           // frames above in are taken; in is booked only
	Claim    *ClaimWords `yaml:"claim,omitempty" json:"claim,omitempty"`         // none: everything of the port
}

// CrossConfig is what lies between two ports of a virtual switch.
type CrossConfig struct {
	From     string   `yaml:"from" json:"from"` // ports by name
	To       string   `yaml:"to" json:"to"`
	Buffer   size     `yaml:"buffer,omitempty" json:"buffer,omitempty"`
	Lend     fraction `yaml:"lend,omitempty" json:"lend,omitempty"`
	Manager  string   `yaml:"manager,omitempty" json:"manager,omitempty"`
	Quantum  size     `yaml:"quantum,omitempty" json:"quantum,omitempty"`   // of the input at this output's drr
	Priority int      `yaml:"priority,omitempty" json:"priority,omitempty"` // at its sp
}

// ClaimWords is what of a shared port's frames belong to a switch: one of these.
type ClaimWords struct {
	VLAN   int    `yaml:"vlan,omitempty" json:"vlan,omitempty"`
	VNI    *int   `yaml:"vni,omitempty" json:"vni,omitempty"`
	Label  *int   `yaml:"mpls,omitempty" json:"mpls,omitempty"`
	DSCP   *int   `yaml:"dscp,omitempty" json:"dscp,omitempty"`
	MAC    string `yaml:"mac,omitempty" json:"mac,omitempty"`
	Prefix string `yaml:"prefix,omitempty" json:"prefix,omitempty"`
}

// Quantities as they are written.
type (
	Rate = file.Rate
	Size = file.Size
	Span = file.Span

	rate = Rate
	size = Size
	span = Span

	// Fraction is a part: 0.5 or 50%.
	Fraction = fraction

	fraction float64 // 0.5 or 50%
)

func (f *fraction) UnmarshalText(text []byte) error {
	word, percent := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(word, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("%q is no part such as 0.5 or 50%%", text)
	}
	*f = fraction(v)
	return nil
}

func (f fraction) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(f), 'g', -1, 64), nil
}

// Defaults of a hosting switch.
const (
	DefaultRate       = 100 * vnet.Gbit // of a port: more than a machine forwards
	DefaultCrosspoint = 64 * vnet.MiB
	DefaultBuffer     = 512 * vnet.KiB
	DefaultSpin       = 20 * time.Microsecond
)

// Parse reads a hosting switch. The name is used in errors only; they are one
// line, FILE:LINE:COLUMN, what is wrong and what to do instead.
func Parse(name string, text []byte) (*Config, error) {
	c := &Config{}
	err := file.Decode(name, text, c, func() error {
		c.fill()
		return c.check()
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Text writes a hosting switch so that Parse reads it.
func (c *Config) Text() ([]byte, error) {
	filled := *c
	filled.Ports, filled.Switches = slices.Clone(c.Ports), slices.Clone(c.Switches)
	filled.fill()
	return json.MarshalIndent(&filled, "", " ")
}

func (c *Config) fill() {
	c.Crosspoint = cmp.Or(c.Crosspoint, size(DefaultCrosspoint))
	c.Sharing = cmp.Or(c.Sharing, "strict")
	c.Spin = cmp.Or(c.Spin, span(DefaultSpin))
	for i := range c.Ports {
		p := &c.Ports[i]
		p.Rate, p.Scheduler = cmp.Or(p.Rate, rate(DefaultRate)), cmp.Or(p.Scheduler, "drr")
	}
	for i := range c.Switches {
		v := &c.Switches[i]
		v.Buffer, v.Scheduler = cmp.Or(v.Buffer, size(DefaultBuffer)), cmp.Or(v.Scheduler, "drr")
		v.Manager, v.Lookup = cmp.Or(v.Manager, "tail-drop"), cmp.Or(v.Lookup, "learning")
	}
}

// check says what is wrong with c.
func (c *Config) check() error {
	cfg, err := c.hosting(c.places())
	if err != nil {
		return err
	}
	list, err := c.virtuals(c.places(), nil)
	if err != nil {
		return err
	}
	if err := vxswitch.Admit(cfg, list); err != nil {
		return fail("virtual_switches", "%v", err)
	}
	return nil
}

// places numbers the ports in their order.
func (c *Config) places() map[string]int {
	at := map[string]int{}
	for i, p := range c.Ports {
		at[p.Name] = i
	}
	return at
}

// MaxPorts is the most real ports of a hosting switch.
const MaxPorts = vxswitch.MaxPorts

// hosting is the physical switch: MaxPorts places, those of c's ports as c says.
func (c *Config) hosting(at map[string]int) (vxswitch.Config, error) {
	cfg := vxswitch.Config{Crosspoint: vnet.Bytes(c.Crosspoint), MaxFrame: longest, MaxSwitches: 256}
	switch c.Sharing {
	case "strict":
	case "flexible":
		cfg.Sharing = vxswitch.Flexible
	default:
		return cfg, fail("sharing", "%q: strict or flexible", c.Sharing)
	}
	if len(c.Ports) > MaxPorts {
		return cfg, fail("ports", "%d ports: %d are possible", len(c.Ports), MaxPorts)
	}
	unused := vxswitch.PhysicalPort{In: DefaultRate, Out: DefaultRate, Scheduler: sched.DRR{}, Capped: true}
	cfg.Ports = slices.Repeat([]vxswitch.PhysicalPort{unused}, MaxPorts)
	for i, p := range c.Ports {
		if err := c.checkPort(i, p); err != nil {
			return cfg, err
		}
		k, err := sched.Parse(p.Scheduler)
		if err != nil {
			return cfg, fail(fmt.Sprintf("ports[%d].scheduler", i), "%v", err)
		}
		cfg.Ports[at[p.Name]] = vxswitch.PhysicalPort{Name: p.Name, In: vnet.Rate(p.Rate), Out: vnet.Rate(p.Rate), Scheduler: k, Capped: !p.Shared}
	}
	return cfg, nil
}

// virtuals are the virtual switches as the engine takes them. A switch that
// was there before keeps its ports' numbers.
func (c *Config) virtuals(at map[string]int, before *Config) (list []vxswitch.Virtual, err error) {
	for i := range c.Switches {
		var was *VirtualConfig
		if before != nil {
			was = before.virtualNamed(c.Switches[i].Name)
		}
		c.Switches[i].keepOrder(was)
		if n := len(c.Switches[i].Ports); n > vxswitch.MaxPorts {
			return nil, fail(fmt.Sprintf("virtual_switches[%d].ports", i), "%d ports: %d are possible", n, vxswitch.MaxPorts)
		}
		v, err := c.virtual(i, at)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (c *Config) virtualNamed(name string) *VirtualConfig {
	for i := range c.Switches {
		if c.Switches[i].Name == name {
			return &c.Switches[i]
		}
	}
	return nil
}

// keepOrder puts w's ports where was has them; one that is gone leaves a hole,
// a port without a name. A new port comes last, into a hole only when there
// are many: a hole may still be sending.
func (w *VirtualConfig) keepOrder(was *VirtualConfig) {
	left := slices.DeleteFunc(slices.Clone(w.Ports), func(p VirtualPortConfig) bool { return p.Port == "" })
	if was == nil {
		w.Ports = left
		return
	}
	var order []VirtualPortConfig
	for _, p := range was.Ports {
		i := slices.IndexFunc(left, func(q VirtualPortConfig) bool { return q.Port == p.Port })
		if i < 0 {
			order = append(order, VirtualPortConfig{})
			continue
		}
		order = append(order, left[i])
		left = slices.Delete(left, i, i+1)
	}
	for _, p := range left {
		hole := slices.IndexFunc(order, func(q VirtualPortConfig) bool { return q.Port == "" })
		if hole >= 0 && len(order) >= manyPorts {
			order[hole] = p
		} else {
			order = append(order, p)
		}
	}
	w.Ports = order
}

const manyPorts = 64

func fail(path, format string, args ...any) error {
	return &vnet.FieldError{Path: path, Problem: fmt.Sprintf(format, args...)}
}

func (c *Config) checkPort(i int, p PortConfig) error {
	where := fmt.Sprintf("ports[%d]", i)
	switch {
	case len(p.device()) != max(len(p.Tap), len(p.Packet), len(p.XDP)) || p.device() == "":
		return fail(where, "port %q is tap: NAME, packet: NAME or xdp: NAME, one of them", p.Name)
	case len(p.device()) > 15 || strings.ContainsAny(p.device(), "/ \t\n%"):
		return fail(where, "%q is no name of a device: at most 15 characters, none of them space or /", p.device())
	case c.port(p.Name) != i:
		return fail(where, "there are two ports %q: names must differ", p.Name)
	case p.MTU != 0 && (p.MTU < 68 || p.MTU > 65521):
		return fail(where+".mtu", "%d: from 68 to 65521 are possible", p.MTU)
	}
	if _, err := parseMAC(p.Address); err != nil && p.Address != "" {
		return fail(where+".address", "%v", err)
	}
	return nil
}

// device is the name of its device.
func (p PortConfig) device() string { return p.Tap + p.Packet + p.XDP }

// opens is what is opened, in words that differ for what differs.
func (p PortConfig) opens() string {
	return fmt.Sprintf("%q %q %q %q", p.Tap, p.Packet, p.XDP, p.Namespace)
}

func (c *Config) port(name string) int {
	return slices.IndexFunc(c.Ports, func(p PortConfig) bool { return p.Name == name })
}

// virtual is virtual switch i as the engine takes it.
func (c *Config) virtual(i int, places map[string]int) (v vxswitch.Virtual, err error) {
	w, where := &c.Switches[i], fmt.Sprintf("virtual_switches[%d]", i)
	own, err := sched.Parse(w.Scheduler)
	if err != nil {
		return v, fail(where+".scheduler", "%v", err)
	}
	manager, err := sched.ParseManager(w.Manager)
	if err != nil {
		return v, fail(where+".manager", "%v", err)
	}
	v = vxswitch.Virtual{Name: w.Name, Buffer: vxswitch.Crosspoint{Size: vnet.Bytes(w.Buffer), Lend: float64(w.Lend), Manager: manager}}
	for j, p := range w.Ports {
		at := fmt.Sprintf("%s.ports[%d]", where, j)
		if p.Port == "" && p.In == 0 { // a hole of keepOrder
			v.Ports = append(v.Ports, vxswitch.Port{Physical: -1})
			continue
		}
		phys, ok := places[p.Port]
		if !ok {
			return v, fail(at+".port", "no port %q on this switch", p.Port)
		}
		claim, err := p.claim(phys)
		if err != nil {
			return v, fail(at+".claim", "%v", err)
		}
		v.Claims = append(v.Claims, claim)
		mine := own
		if p.Own != "" {
			if mine, err = sched.Parse(p.Own); err != nil {
				return v, fail(at+".scheduler", "%v", err)
			}
		}
		v.Ports = append(v.Ports, vxswitch.Port{
			Physical: phys, In: vnet.Rate(p.In), Out: vnet.Rate(p.Out), Police: !p.Open && p.In < c.Ports[c.port(p.Port)].Rate,
			InBurst: inBurst(vnet.Rate(p.In)), OutBurst: outBurst(vnet.Rate(p.Out)),
			Quantum: vnet.Bytes(p.Quantum), Priority: p.Priority, Scheduler: mine,
		})
	}
	if v.Reach, err = w.reach(); err != nil {
		return v, fail(where+".blocked", "%v", err)
	}
	if v.Crosspoints, err = w.crosspoints(where, v.Buffer); err != nil {
		return v, err
	}
	known, err := w.stations(where)
	if err != nil {
		return v, err
	}
	v.Lookup, err = w.forwarder(where, known)
	return v, err
}

// stations are those that are known, by number of port.
func (w *VirtualConfig) stations(where string) (list []lookup.Station, err error) {
	for i, c := range w.Stations {
		at := fmt.Sprintf("%s.stations[%d]", where, i)
		s := lookup.Station{Port: w.portNamed(c.Port)}
		if s.Port < 0 || c.Port == "" {
			return nil, fail(at+".port", "%q: name a port of the switch", c.Port)
		}
		if s.MAC, err = parseMAC(c.MAC); err != nil || s.MAC.Multicast() {
			return nil, fail(at+".mac", "%q is no MAC address of a station such as 02:00:00:00:00:01", c.MAC)
		}
		if c.Address != "" {
			if s.Address, err = netip.ParseAddr(c.Address); err != nil {
				return nil, fail(at+".address", "%q is no IP address such as 10.0.0.1", c.Address)
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// inBurst is two frames, or what the rate carries in two milliseconds.
func inBurst(r vnet.Rate) vnet.Bytes { return max(2*1514, vnet.Bytes(r/8/500)) }

// outBurst is more: while the process waits for its CPU nothing leaves, and
// what came in meanwhile must still get the rate. Ten milliseconds are what a
// busy machine lets one wait, and too little to be seen in a rate.
func outBurst(r vnet.Rate) vnet.Bytes { return max(2*1514, vnet.Bytes(r/8/100)) }

func (w *VirtualConfig) portNamed(name string) int {
	return slices.IndexFunc(w.Ports, func(p VirtualPortConfig) bool { return p.Port == name })
}

// crosspoints are those that differ from usual, in their places; nil: none.
func (w *VirtualConfig) crosspoints(where string, usual vxswitch.Crosspoint) (all [][]vxswitch.Crosspoint, err error) {
	if len(w.Cross) == 0 {
		return nil, nil
	}
	all = make([][]vxswitch.Crosspoint, len(w.Ports))
	for i := range all {
		all[i] = slices.Repeat([]vxswitch.Crosspoint{usual}, len(w.Ports))
	}
	for i, c := range w.Cross {
		at := fmt.Sprintf("%s.crosspoints[%d]", where, i)
		from, to := w.portNamed(c.From), w.portNamed(c.To)
		if from < 0 || to < 0 {
			return nil, fail(at, "from %q to %q: name two ports of the switch", c.From, c.To)
		}
		x := &all[from][to]
		if c.Manager != "" {
			if x.Manager, err = sched.ParseManager(c.Manager); err != nil {
				return nil, fail(at+".manager", "%v", err)
			}
		}
		x.Size, x.Quantum, x.Priority = vnet.Bytes(cmp.Or(c.Buffer, w.Buffer)), vnet.Bytes(c.Quantum), c.Priority
		if c.Lend != 0 {
			x.Lend = float64(c.Lend)
		}
	}
	return all, nil
}

// reach is the forwarding matrix: all but what is blocked.
func (w *VirtualConfig) reach() ([][]bool, error) {
	n := len(w.Ports)
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = slices.Repeat([]bool{true}, n)
		reach[i][i] = false
	}
	for _, b := range w.Blocked {
		from, to := w.portNamed(b[0]), w.portNamed(b[1])
		if from < 0 || to < 0 {
			return nil, fmt.Errorf("[%s, %s]: name two ports of the switch", b[0], b[1])
		}
		reach[from][to] = false
	}
	return reach, nil
}

// claim is what of the port's frames belong to the switch.
func (p VirtualPortConfig) claim(phys int) (c vxswitch.Claim, err error) {
	c = vxswitch.Claim{By: vxswitch.ByPort, Port: phys}
	if p.Claim == nil {
		return c, nil
	}
	set := 0
	number := func(by vxswitch.Field, n *int, limit int) {
		if n == nil {
			return
		}
		set++
		c.By, c.Value = by, uint32(*n)
		if *n < 0 || *n >= limit {
			err = fmt.Errorf("%d: from 0 to %d are possible", *n, limit-1)
		}
	}
	w := p.Claim
	if w.VLAN != 0 {
		number(vxswitch.ByVLAN, &w.VLAN, 4095)
	}
	number(vxswitch.ByVNI, w.VNI, vnet.MaxVNI+1)
	number(vxswitch.ByLabel, w.Label, 1<<20)
	number(vxswitch.ByDSCP, w.DSCP, 64)
	if w.MAC != "" {
		set++
		c.By = vxswitch.ByMAC
		if c.MAC, err = parseMAC(w.MAC); err != nil {
			return c, err
		}
	}
	if w.Prefix != "" {
		set++
		c.By = vxswitch.ByPrefix
		if c.Prefix, err = netip.ParsePrefix(w.Prefix); err != nil {
			return c, fmt.Errorf("%q is no prefix such as 10.0.0.0/8", w.Prefix)
		}
	}
	if err == nil && set != 1 {
		err = fmt.Errorf("it names %d fields: name one of vlan, vni, mpls, dscp, mac, prefix", set)
	}
	return c, err
}

func parseMAC(text string) (m vxswitch.MAC, err error) {
	n, err := fmt.Sscanf(text, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5])
	if err != nil || n != 6 || len(text) != 17 {
		return m, fmt.Errorf("%q is no MAC address such as 02:00:00:00:00:01", text)
	}
	return m, nil
}
