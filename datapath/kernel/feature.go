package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Feature is something this machine may lack.
type Feature struct {
	Name  string
	Err   error  // nil: there; ErrNotSupported: not there; another: could not tell
	Means string // what lacks without it
}

// Features tries out what Sublet uses or may use, in namespaces of its own
// that vanish at once. It needs root.
func Features() []Feature {
	list := []Feature{
		{"network namespaces", namespaceFeature("net"), "nothing works: every node is one"},
		{"user namespaces", namespaceFeature("user"), "nodes cannot be made: root inside would be root of the host"},
		{"process namespaces", namespaceFeature("pid"), "sublet exec does not work"},
	}
	for _, f := range []struct{ kind, means string }{
		{"veth", "no virtual link works"},
		{"vxlan", "packets between hosts are copied once more: nodes reserve no room for outer headers; datagrams sent in large pieces are cut"},
		{"gre", "nothing: GRE tunnels need no device"},
		{"ipip", "nothing: IP-in-IP tunnels need no device"},
		{"geneve", "nothing: Geneve tunnels need no device"},
		{"vrf", "nothing today: routers are namespaces of their own"},
		{"bridge", "packets between hosts are copied once more: nodes reserve no room for outer headers"},
	} {
		list = append(list, Feature{"device " + f.kind, deviceFeature(f.kind), f.means})
	}
	for _, f := range []struct{ kind, means string }{
		{"tbf", "rates of links are not enforced"},
		{"htb", "links between hosts are not guaranteed their rate"},
		{"bfifo", "queues cannot be sized"},
		{"clsact", "no virtual link works: frames find no way"},
		{"netem", "the lab cannot delay its wires"},
		{"fq", "nothing: shaping does not depend on pacing"},
	} {
		list = append(list, Feature{"qdisc " + f.kind, qdiscFeature(f.kind), f.means})
	}
	return append(list, machineFeatures()...)
}

// machineFeatures are those outside the network code.
func machineFeatures() []Feature {
	list := []Feature{{"filter cls_bpf", programFeature(), "no virtual link works: frames find no way"}}
	groups, err := FindCgroups("/sys/fs/cgroup")
	for _, f := range []struct{ controller, means string }{
		{"cpu", "a node's cpu limit cannot be set"},
		{"memory", "a node's memory limit cannot be set"},
		{"pids", "a node may start processes without limit"},
	} {
		list = append(list, Feature{"cgroup " + f.controller, groups.feature(f.controller, err), f.means})
	}
	_, tracked := groups.tracker()
	list = append(list, Feature{"cgroup tracking", tracked, "no node can be made: its processes could not be found again"})
	for _, f := range []struct{ name, path, means string }{
		{"BTF", "/sys/kernel/btf/vmlinux", "routers forward by their stacks only: the short way asks the kernel whether its table is still right"},
		{"Open vSwitch datapath", "/sys/module/openvswitch", "nothing: Sublet does not use it"},
		{"FRR zebra", FRR("zebra"), "routers with protocol: ospf fail (apt-get install frr)"},
		{"FRR ospfd", FRR("ospfd"), "routers with protocol: ospf fail (apt-get install frr)"},
	} {
		list = append(list, Feature{f.name, pathFeature(f.path), f.means})
	}
	return append(list, Feature{"nsenter", commandFeature("nsenter"), "sublet exec and OSPF do not work (apt-get install util-linux)"})
}

func namespaceFeature(kind string) error { return pathFeature("/proc/self/ns/" + kind) }

func pathFeature(path string) error {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return ErrNotSupported
	} else {
		return err
	}
}

func commandFeature(name string) error {
	if _, err := exec.LookPath(name); errors.Is(err, exec.ErrNotFound) {
		return ErrNotSupported
	} else {
		return err
	}
}

func (c Cgroups) feature(controller string, err error) error {
	if _, version := c.Controller(controller); err == nil && version == 0 {
		return fmt.Errorf("no hierarchy with controller %s is mounted: %w", controller, ErrNotSupported)
	}
	return err
}

// deviceFeature makes a device of a kind.
func deviceFeature(kind string) error {
	return trial(func(c *Conn) error { return c.Do(device(kind)) })
}

// device is the least that each kind asks for.
func device(kind string) *Message {
	address := []byte{192, 0, 2, 1}
	return NewLink("trial", kind, func(m *Message) {
		switch kind {
		case "vxlan":
			m.Uint32(1, 1).Uint16BE(15, 4789) // VNI, port
		case "geneve":
			m.Uint32(1, 1).Attr(2, address) // VNI, remote
		case "gre":
			m.Attr(7, address) // remote
		case "ipip":
			m.Attr(3, address) // remote
		case "vrf":
			m.Uint32(1, 10) // table
		}
	})
}

// qdiscFeature puts a qdisc on a device.
func qdiscFeature(kind string) error {
	return onTrialDevice(func(c *Conn, index int) error {
		switch kind {
		case "clsact":
			return c.SetClsact(index)
		case "htb":
			return c.Do(SetHTB(index, 1))
		case "tbf":
			return c.Do(SetTBF(index, Shaper{Rate: 1 << 20, Burst: 1 << 16, Limit: 1 << 16}))
		case "bfifo":
			return c.Do(SetFIFO(index, Handle(1, 0), TCRoot, 1<<16))
		case "netem":
			return c.Do(SetQdisc(index, Handle(1, 0), TCRoot, kind, func(m *Message) { m.Raw(make([]byte, 24)) }))
		}
		return c.Do(SetQdisc(index, Handle(1, 0), TCRoot, kind, nil))
	})
}

// programFeature asks for a filter without a program: a kernel with cls_bpf
// says that the program is missing.
func programFeature() error {
	err := onTrialDevice(func(c *Conn, index int) error {
		if err := c.SetClsact(index); err != nil {
			return err
		}
		return c.Do(SetFilter(index, -1, "trial"))
	})
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EINVAL) && !strings.Contains(err.Error(), "not found") {
		return nil
	}
	return err
}

func onTrialDevice(f func(c *Conn, index int) error) error {
	return trial(func(c *Conn) error {
		const loopback = 1
		return f(c, loopback)
	})
}

// trial runs f in a namespace of its own. What the kernel does not know it
// calls an unsupported operation, or a kind that is not found.
func trial(f func(*Conn) error) error {
	ns, err := NewNamespace(func() error {
		c, err := Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return f(c)
	})
	if err == nil {
		return ns.Close()
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w (%w)", ErrNotSupported, err)
	}
	return err
}
