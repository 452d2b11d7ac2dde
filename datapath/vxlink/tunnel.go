package vxlink

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Outer header fields: the registered port (RFC 7348), a TTL that survives any
// substrate, and class selector 5 for leases, 0 for best effort (RFC 2474).
const (
	tunnelPort = 4789
	tunnelTTL  = 64
	tosLeased  = 5 << 5
)

func tos(t *plan.Tunnel) uint8 {
	if t.Class.BestEffort {
		return 0
	}
	return tosLeased
}

// identity is what makes a tunnel another tunnel when it differs.
func identity(t *plan.Tunnel) vxlan {
	return vxlan{vni: uint32(t.VNI), local: t.Local, remote: t.Remote, tos: tos(t), sources: [2]uint16{firstSource, lastSource}}
}

// tunnel makes a VXLAN device, and its class of the physical interface.
func (w *work) tunnel(i int, have kernel.Link, want *plan.Tunnel) (end, error) {
	uplink, err := w.home.LinkByName(want.Interface)
	if err != nil {
		return end{}, fmt.Errorf("find uplink %s: %w", want.Interface, err)
	}
	minor, best := parseMark(have.Alias)
	got := parseVxlan(have.Data)
	stamped := got.tos == tos(want)
	got.tos = tos(want) // changed in place
	if have.Kind != "vxlan" || got != identity(want) || have.Peer != uplink.Index {
		if err := w.remove(i); err != nil {
			return end{}, err
		}
		if have, err = w.makeTunnel(i, uplink.Index, want); err != nil {
			return end{}, err
		}
		minor, stamped = 0, true
	}
	e := end{Link: have, minor: minor}
	if minor != 0 && best != want.Class.BestEffort { // classes never move
		e.minor, e.retired = 0, minor
	}
	if !stamped {
		if err := w.inside.Do(restamp(e.Index, want)); err != nil {
			return e, fmt.Errorf("set its type of service: %w", err)
		}
	}
	return w.classify(e, i, want)
}

// restamp begins a change of the outer type of service.
func restamp(index int, want *plan.Tunnel) *kernel.Message {
	m := kernel.ChangeLink(index)
	return m.Nest(unix.IFLA_LINKINFO, func() {
		m.String(unix.IFLA_INFO_KIND, "vxlan").Nest(unix.IFLA_INFO_DATA, func() { m.Uint8(vxlanTOS, tos(want)) })
	})
}

// makeTunnel makes the device from the host's namespace, where its outer
// packets travel, straight into the fabric.
func (w *work) makeTunnel(i, uplink int, want *plan.Tunnel) (kernel.Link, error) {
	name := w.link.Device(i)
	m := kernel.NewLink(name, "vxlan", func(m *kernel.Message) {
		m.Uint32(vxlanID, uint32(want.VNI)).Uint32(vxlanLink, uint32(uplink))
		if want.Remote.Is4() {
			m.Attr(vxlanLocal, want.Local.AsSlice()).Attr(vxlanRemote, want.Remote.AsSlice())
		} else {
			m.Attr(vxlanLocal6, want.Local.AsSlice()).Attr(vxlanRemote6, want.Remote.AsSlice())
		}
		// Inner checksums protect tenants' data; an outer one only costs (RFC 7348 section 5).
		m.Uint8(vxlanChecksum, 0).Uint8(vxlanNoSum6Tx, 1).Uint8(vxlanNoSum6Rx, 1)
		m.Attr(vxlanSources, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, firstSource), lastSource))
		m.Uint8(vxlanLearning, 0).Uint8(vxlanTTL, tunnelTTL).Uint8(vxlanTOS, tos(want)).Uint16BE(vxlanPort, tunnelPort)
	}).Uint32(iflaMTU, uint32(want.MTU)).Uint32(unix.IFLA_NET_NS_FD, uint32(w.fabric.Fd()))
	err := w.home.Do(m)
	for end := time.Now().Add(releaseTime); kernel.Exists(err) && time.Now().Before(end); err = w.home.Do(m) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return kernel.Link{}, fmt.Errorf("make vxlan %d from %s to %s: %w", want.VNI, want.Local, want.Remote, err)
	}
	return w.inside.LinkByName(name)
}

// releaseTime bounds the wait for a VNI whose last device is in a fabric that
// was removed: the kernel takes those down later.
const releaseTime = 2 * time.Second

// classify gives a tunnel its class, whose number is written on the device
// before the class exists, so that no crash loses it.
func (w *work) classify(e end, i int, want *plan.Tunnel) (end, error) {
	if e.minor == 0 {
		minor, err := w.part.takeMinor(w.home, e.Peer)
		if err != nil {
			return e, err
		}
		e.minor = minor
		e.Alias = w.mark(minor, w.link.Ends[i])
		if err := w.inside.Do(kernel.ChangeLink(e.Index).String(iflaAlias, e.Alias)); err != nil {
			return e, fmt.Errorf("mark it: %w", err)
		}
	}
	e.class = kernel.Handle(1, e.minor)
	parent, class, limit := classOf(want)
	err := setClass(w.home, e.Peer, e.minor, parent, class)
	if err == nil {
		err = w.home.Do(kernel.SetFIFO(e.Peer, kernel.Handle(e.minor, 0), e.class, limit))
	}
	if err != nil {
		return e, fmt.Errorf("set class 1:%x of %s: %w", e.minor, want.Interface, err)
	}
	return e, nil
}

// classOf is a tunnel's class, below which one it is, and the limit of its queue.
func classOf(t *plan.Tunnel) (parent uint16, class kernel.HTBClass, limit uint32) {
	mtu := t.MTU + plan.OuterHeaders
	limit = queue(t.Class.Ceil, mtu)
	if t.Class.BestEffort {
		return minorBest, htb(t.Class.Rate, t.Class.Ceil, mtu, bestEffort), limit
	}
	return minorLeases, htb(t.Class.Rate, t.Class.Ceil, mtu, leased), limit
}

// mark is the alias of an end's device: whose it is, and a tunnel's class.
func (w *work) mark(minor uint16, e plan.End) string {
	mark := fmt.Sprintf("sublet %s %s", w.link.Lease, w.link.Link)
	if e.Tunnel == nil {
		return mark
	}
	service := "leased"
	if e.Tunnel.Class.BestEffort {
		service = "best-effort"
	}
	return fmt.Sprintf("%s 1:%x %s", mark, minor, service)
}

// parseMark reads a tunnel's class; 0: none.
func parseMark(alias string) (minor uint16, best bool) {
	fields := strings.Fields(alias)
	if len(fields) < 5 {
		return 0, false
	}
	if n, err := fmt.Sscanf(fields[3], "1:%x", &minor); n != 1 || err != nil {
		return 0, false
	}
	return minor, fields[4] == "best-effort"
}

// linkName reads the link out of a mark.
func linkName(alias string) string {
	fields := strings.Fields(alias)
	if len(fields) < 3 {
		return ""
	}
	return fields[2]
}
