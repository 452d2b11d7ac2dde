package vnode

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// nic is an interface of a machine. In the node it stands beside a TAP device, and a
// program on each sends what comes in by one out by the other: what enforces rates,
// isolates and counts is at the other end of the node's interface, as for any node.
type nic struct {
	kernel.Link // of the node
	addresses   []kernel.Address
	routes      []kernel.Route
	files       []*os.File // TAP device, and what the kernel has for it
	tap         int        // its number

	in, out *ebpf.Program // from the node's interface to the machine, and back
}

const (
	nodeInterface = "eth" // beginning of the names of a node's interfaces
	tapInterface  = "vm-" // before those of a machine's TAP devices
	mostNICs      = 24    // for which the machine has slots
)

// interfaces are those that the node has now, with TAP devices. They are closed by
// closeTaps, also after an error.
func (s *supervisor) interfaces() (nics []nic, err error) {
	network, err := os.Open(s.room("net"))
	if err != nil {
		return nil, err
	}
	defer network.Close()
	err = kernel.In(network, func() error {
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		if nics, err = interfacesOf(c); err != nil {
			return err
		}
		for i := range nics {
			if err := nics[i].makeTap(c, s.Machine.KVM); err != nil {
				return fmt.Errorf("interface %s: %w", nics[i].Name, err)
			}
		}
		return nil
	})
	return nics, err
}

// interfacesOf reads a node's, with what its kernel was told of the network.
func interfacesOf(c *kernel.Conn) (nics []nic, err error) {
	links, err := c.Links()
	if err != nil {
		return nil, err
	}
	addresses, err := c.Addresses(0)
	if err != nil {
		return nil, err
	}
	routes, err := c.Routes(0, kernel.RouteProtocol)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if !isNodes(l) {
			continue
		}
		n := nic{Link: l}
		for _, a := range addresses {
			if a.Index == l.Index && !a.Local.IsLinkLocalUnicast() {
				n.addresses = append(n.addresses, a)
			}
		}
		for _, r := range routes {
			if r.Index == l.Index {
				n.routes = append(n.routes, r)
			}
		}
		nics = append(nics, n)
	}
	if len(nics) > mostNICs {
		return nil, fmt.Errorf("%d interfaces are more than the %d that a machine can have", len(nics), mostNICs)
	}
	return nics, nil
}

func isNodes(l kernel.Link) bool {
	return l.Kind == "veth" && strings.HasPrefix(l.Name, nodeInterface)
}

// makeTap makes an interface's device in the calling thread's namespace. With KVM
// the kernel moves its frames, if it can.
func (n *nic) makeTap(c *kernel.Conn, fast bool) error {
	name := tapInterface + n.Name
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	n.files = append(n.files, os.NewFile(uintptr(fd), name))
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return fmt.Errorf("make a TAP device: %w", err)
	}
	// The node's own kernel says nothing by it.
	_ = kernel.Sysctl("ipv6/conf/"+name+"/disable_ipv6", "1") // a kernel without IPv6 has no such file
	tap, err := c.LinkByName(name)
	if err != nil {
		return err
	}
	n.tap = tap.Index
	if fast {
		if vhost, err := os.OpenFile(vhostNet, os.O_RDWR, 0); err == nil {
			n.files = append(n.files, vhost)
		}
	}
	return c.Do(kernel.UpLink(tap.Index).Uint32(unix.IFLA_MTU, uint32(n.MTU)))
}

// redirect is a program that sends all frames out by a device. It is assembled here
// because it has the device's number in it, and nothing else.
func redirect(device int) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "sublet_machine", Type: ebpf.SchedCLS,
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, int32(device)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return(),
		},
	})
}

// join connects an interface of the node, as it is now, with its TAP device. What
// is right is not touched.
func (n *nic) join(c *kernel.Conn) (err error) {
	now, err := c.LinkByName(n.Name)
	if kernel.NotFound(err) {
		return nil // it is being made anew
	}
	if err != nil {
		return err
	}
	if n.in == nil {
		if n.in, err = redirect(n.tap); err != nil {
			return err
		}
	}
	if n.out == nil || n.Index != now.Index {
		n.separate(&n.out)
		if n.out, err = redirect(now.Index); err != nil {
			return err
		}
		n.Index = now.Index
	}
	return errors.Join(filter(c, now.Index, n.in), filter(c, n.tap, n.out))
}

func (n *nic) separate(programs ...**ebpf.Program) {
	for _, p := range programs {
		if *p != nil {
			(*p).Close()
		}
		*p = nil
	}
}

// filter puts a program on a device's ingress, unless it is there.
func filter(c *kernel.Conn, index int, program *ebpf.Program) error {
	info, err := program.Info()
	if err != nil {
		return err
	}
	id, _ := info.ID()
	if have, count, err := c.FilterProgram(index); err == nil && count == 1 && have == uint32(id) {
		return nil
	}
	if err := c.SetClsact(index); err != nil {
		return fmt.Errorf("make the filter hook: %w", err)
	}
	return c.Do(kernel.SetFilter(index, program.FD(), "sublet"))
}

// joinEvery is how often interfaces are looked at: a repair of a link makes its ends
// anew.
const joinEvery = 500 * time.Millisecond

// keepJoined keeps a machine's interfaces connected until ended is closed. It ends
// the machine, to be started with another one, when the node gets an interface that
// the machine has not.
func (s *supervisor) keepJoined(nics []nic, pid int, ended <-chan struct{}) {
	network, err := os.Open(s.room("net"))
	if err != nil {
		return
	}
	defer network.Close()
	c, err := kernel.DialIn(network)
	if err != nil {
		return
	}
	defer c.Close()
	defer func() {
		for i := range nics {
			nics[i].separate(&nics[i].in, &nics[i].out)
		}
	}()
	for {
		for i := range nics {
			if err := nics[i].join(c); err != nil {
				s.log(fmt.Sprintf("sublet: interface %s: %v\n", nics[i].Name, err))
			}
		}
		if hasMore(c, nics) && !s.replugged.Swap(true) {
			unix.Kill(pid, unix.SIGTERM)
		}
		select {
		case <-ended:
			return
		case <-time.After(joinEvery):
		}
	}
}

// hasMore says that the node has an interface that is none of some.
func hasMore(c *kernel.Conn, nics []nic) bool {
	links, err := c.Links()
	if err != nil {
		return false
	}
	known := make(map[string]bool)
	for _, n := range nics {
		known[n.Name] = true
	}
	for _, l := range links {
		if isNodes(l) && !known[l.Name] {
			return true
		}
	}
	return false
}
