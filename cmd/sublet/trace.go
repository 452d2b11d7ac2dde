package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// traceView is what `sublet overlay trace -o json` says.
type traceView struct {
	Network   vnet.VNetID `json:"network"`
	From      string      `json:"from"`
	To        string      `json:"to"`
	Size      int         `json:"size_bytes"` // of the IP packet
	Delivered bool        `json:"delivered"`
	Steps     []traceStep `json:"steps"`
}

// traceStep is one thing that happens to the packet.
type traceStep struct {
	Host string `json:"host"`
	At   string `json:"at"`   // node, device or program
	Does string `json:"does"` // in words
	OK   bool   `json:"ok"`   // false: the packet ends here
}

func (a *app) trace() *cobra.Command {
	size := 100
	c := a.noun(&cobra.Command{
		Use:   "trace NETWORK SRC DST",
		Short: "Explain the way of one packet, step by step",
		Long: `Explain what would happen to one packet from a node of a network to another:
which route it takes, which links it crosses, and on every tunnel which entry it
meets, which headers it gets and what the far host checks. Routes are those of
the plan; what a tenant changed inside their routers is not seen. No packet is
sent. Exit code 1: it would not arrive.`,
		Example:           "  sublet overlay trace hello ping pong\n  sublet overlay trace hello ping pong --size 1500 -o json",
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if size < 20 || size > 65535 {
				return badInput{fmt.Errorf("--size %d: state from 20 to 65535 bytes", size)}
			}
			return a.runTrace(c.Context(), args, size)
		},
	})
	c.Flags().IntVar(&size, "size", size, "size of the IP packet, bytes")
	return c
}

func (a *app) runTrace(ctx context.Context, args []string, size int) error {
	client := a.client()
	leases, err := client.Leases(ctx)
	if err != nil {
		return err
	}
	l, err := find(leases, args[0])
	if err != nil {
		return err
	}
	if !l.State.Up() {
		return badInput{fmt.Errorf("network %s is %s: only a running one carries packets", args[0], l.State)}
	}
	sub, err := client.Substrate(ctx)
	if err != nil {
		return err
	}
	for _, name := range args[1:] {
		if _, ok := l.Addresses[name]; !ok {
			return badInput{fmt.Errorf("network %s has no node %q: choose from %s", args[0], name, strings.Join(nodesOf(l.Topology()), ", "))}
		}
	}
	t := tracer{ctx: ctx, app: a, lease: l, entries: make(map[vnet.HostID][]report.TunnelState)}
	t.view = traceView{Network: l.Request.Network, From: args[1], To: args[2], Size: size, Delivered: true, Steps: []traceStep{}}
	if err := t.follow(sub); err != nil {
		return err
	}
	return a.printTrace(t.view)
}

func (a *app) printTrace(v traceView) error {
	var rows [][]string
	for _, s := range v.Steps {
		does := s.Does
		if !s.OK {
			does = "DROPPED: " + does
		}
		rows = append(rows, []string{s.Host, s.At, does})
	}
	if err := a.print(v, "HOST AT WHAT", rows); err != nil {
		return err
	}
	if !v.Delivered {
		return status(exitFailed)
	}
	return nil
}

// tracer collects steps until the packet arrives or ends.
type tracer struct {
	ctx     context.Context
	app     *app
	lease   vnet.Lease
	entries map[vnet.HostID][]report.TunnelState // read once a host
	view    traceView
}

// say adds a step; one that is not ok ends the packet.
func (t *tracer) say(ok bool, host vnet.HostID, at, format string, args ...any) {
	t.view.Steps = append(t.view.Steps, traceStep{Host: string(host), At: at, Does: fmt.Sprintf(format, args...), OK: ok})
	t.view.Delivered = t.view.Delivered && ok
}

func (t *tracer) follow(sub vnet.Substrate) error {
	way, broken := plan.Trace(sub, t.lease, t.view.From, t.view.To)
	for _, c := range way {
		if err := t.cross(c); err != nil || !t.view.Delivered {
			return err
		}
	}
	at := t.lease.Mapping.Nodes[t.view.To]
	if broken != nil {
		t.say(false, "", "-", "%v", broken)
		return nil
	}
	t.say(true, at, t.view.To, "arrives at %s", t.lease.Addresses[t.view.To])
	return nil
}

// cross follows the packet over one virtual link.
func (t *tracer) cross(c plan.Crossing) error {
	if len(c.Wires) == 0 {
		t.say(false, t.lease.Mapping.Nodes[c.From], c.From, "link %s is not planned on its host", c.Link)
		return nil
	}
	t.leave(c)
	for _, w := range c.Wires {
		if !t.view.Delivered {
			return nil
		}
		if err := t.wire(w); err != nil {
			return err
		}
	}
	return nil
}

// leave is the sender's own part: the route, and what fits its interface.
func (t *tracer) leave(c plan.Crossing) {
	w := c.Wires[0]
	port := w.Ends[w.In].Port
	t.say(true, w.Host, c.From, "%s: out by %s, link %s", c.Why, port.Interface, c.Link)
	if t.view.Size > port.MTU {
		t.say(false, w.Host, c.From, "%d bytes are more than the MTU %d of %s; a sender that may fragments, else hears of it", t.view.Size, port.MTU, port.Interface)
	}
}

// wire is what one host does for a link.
func (t *tracer) wire(w plan.Wire) error {
	in, out := w.Device(w.In), w.Device(1-w.In)
	if p := w.Out().Port; p != nil {
		t.say(true, w.Host, plan.Fabric(w.Lease)+"/"+in, "to %s of %s%s", p.Interface, p.Namespace, shaped(w.Out().Rate))
		return nil
	}
	tunnel := w.Out().Tunnel
	t.say(true, w.Host, plan.Fabric(w.Lease)+"/"+in, "to tunnel %d (%s): mark %d, class of %s %s", tunnel.VNI, out, tunnel.VNI, tunnel.Interface, tunnel.Class)
	return t.tunnel(w.Host, tunnel)
}

func shaped(r vnet.Rate) string {
	if r == 0 {
		return ""
	}
	return ", shaped to " + readable(r)
}

// tunnel is what the overlay does at both ends.
func (t *tracer) tunnel(host vnet.HostID, tunnel *plan.Tunnel) error {
	e, err := t.entry(host, tunnel.VNI)
	if err != nil {
		return err
	}
	trunk := plan.Trunk(t.lease.ID())
	switch {
	case e == nil:
		t.say(false, host, trunk, "no overlay entry has number %d", tunnel.VNI)
		return nil
	case e.State != report.TunnelValid:
		t.say(false, host, trunk, "entry %d is unresolved: %s", tunnel.VNI, e.Reason)
		return nil
	case t.view.Size > e.PathMTU:
		t.say(false, host, trunk, "%d bytes are more than the %d that the path to %s carries", t.view.Size, e.PathMTU, e.Remote)
		return nil
	}
	t.say(true, host, trunk, "entry %d: %s", tunnel.VNI, headersText(e, t.view.Size))
	t.say(true, host, e.Interface, "queued in its class, sent to %s", e.NextHop)
	return t.arrive(e)
}

// headersText says what a packet gets in front.
func headersText(e *report.TunnelState, size int) string {
	dscp := "CS5"
	if e.BestEffort {
		dscp = "0"
	}
	length := size + e.Protocol.Headers() // with both Ethernet headers, as the wire's MTU counts only one
	if e.Remote.Is6() {
		length += 20
	}
	tunnel := map[vnet.Encapsulation]string{
		vnet.Geneve: "Geneve %d, UDP from 751..852 by the flow to 6081", vnet.NVGRE: "NVGRE %d",
		vnet.KernelVXLAN: "by the stack of the host, with its firewall and IPsec: VXLAN %d, UDP from 751..852 by the flow to 14790",
	}[e.Protocol]
	if tunnel == "" {
		tunnel = "VXLAN %d, UDP from 751..852 by the flow to 4789"
	}
	return fmt.Sprintf(tunnel+", IP %s > %s, %d bytes, DSCP %s, ECN as inside, TTL 64, do not fragment", e.VNI, e.Local, e.Remote, length, dscp)
}

// arrive is the far host's part.
func (t *tracer) arrive(near *report.TunnelState) error {
	host, far, err := t.far(near)
	if err != nil {
		return err
	}
	if far == nil {
		t.say(false, host, "-", "no host with address %s has an entry of number %d", near.Remote, near.VNI)
		return nil
	}
	if far.Remote != near.Local {
		t.say(false, host, far.Interface, "tunnel %d takes packets from %s only (drops: sender)", far.VNI, far.Remote)
		return nil
	}
	port := ""
	if far.Protocol.OverUDP() {
		port = ", a port below 1024"
	}
	t.say(true, host, far.Interface, "overlay_rx: from %s%s, number %d, by %s: headers off, mark %d, to trunk %s",
		far.Remote, port, far.VNI, far.Interface, far.VNI, plan.Trunk(far.Lease))
	return nil
}

// entry reads a host's entry, once a host; nil if there is none.
func (t *tracer) entry(host vnet.HostID, vni vnet.VNI) (*report.TunnelState, error) {
	if _, read := t.entries[host]; !read {
		states, err := t.app.client().Overlay(t.ctx, host)
		if err != nil {
			return nil, err
		}
		t.entries[host] = states
	}
	for i, s := range t.entries[host] {
		if s.VNI == vni {
			return &t.entries[host][i], nil
		}
	}
	return nil, nil
}

// far finds the entry of the other end among the hosts that carry the lease.
func (t *tracer) far(near *report.TunnelState) (vnet.HostID, *report.TunnelState, error) {
	hosts, err := t.app.client().Hosts(t.ctx)
	if err != nil {
		return "", nil, err
	}
	for _, h := range hosts {
		if h.Name == near.Host {
			continue
		}
		e, err := t.entry(h.Name, near.VNI)
		if err != nil {
			return h.Name, nil, err
		}
		if e != nil && e.Local == near.Remote {
			return h.Name, e, nil
		}
	}
	return "", nil, nil
}
