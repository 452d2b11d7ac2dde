package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Feature is something this machine may lack.
type Feature struct {
	Name   string
	Needed bool   // nothing runs without it
	Err    error  // nil: there; ErrNotSupported: not there; another: could not tell
	Means  string // what lacks without it
}

// Lacks says that this machine is known not to have it.
func (f Feature) Lacks() bool { return errors.Is(f.Err, ErrNotSupported) }

// Features tries out what Sublet uses or may use, in namespaces of its own
// that vanish at once. It needs root, and loads no module: what is a module
// that is not loaded is taken for there.
func Features() []Feature {
	list := []Feature{
		{"network namespaces", true, namespaceFeature("net"), "nothing works: every node is one"},
		{"user namespaces", true, namespaceFeature("user"), "nodes cannot be made: root inside would be root of the host"},
		{"process namespaces", false, namespaceFeature("pid"), "sublet exec does not work"},
		{"device veth", true, deviceFeature("veth"), "no virtual link works"},
	}
	for _, f := range []struct{ kind, means string }{
		{"vxlan", "packets between hosts are copied once more: nodes reserve no room for outer headers; datagrams sent in large pieces are cut"},
		{"bridge", "packets between hosts are copied once more: nodes reserve no room for outer headers"},
	} {
		list = append(list, Feature{"device " + f.kind, false, deviceFeature(f.kind), f.means})
	}
	for _, f := range []struct {
		kind, module string
		needed       bool
		means        string
	}{
		{"tbf", "sch_tbf", true, "rates of links are not enforced"},
		{"htb", "sch_htb", true, "links between hosts are not guaranteed their rate"},
		{"bfifo", "sch_fifo", true, "queues cannot be sized"},
		{"clsact", "sch_ingress", true, "no virtual link works: frames find no way"},
		{"netem", "sch_netem", false, "a process delays the wires of labs, where that is asked for (sublet lab up --delays)"},
	} {
		list = append(list, Feature{"qdisc " + f.kind, f.needed, qdiscFeature(f.kind, f.module), f.means})
	}
	list = append(list, wayOutFeatures()...)
	return append(list, machineFeatures()...)
}

// machineFeatures are those outside the network code.
func machineFeatures() []Feature {
	list := []Feature{{"filter cls_bpf", true, programFeature(), "no virtual link works: frames find no way"}}
	groups, err := FindCgroups("/sys/fs/cgroup")
	for _, f := range []struct{ controller, means string }{
		{"cpu", "a node's cpu limit cannot be set"},
		{"memory", "a node's memory limit cannot be set"},
		{"pids", "a node may start processes without limit"},
	} {
		list = append(list, Feature{"cgroup " + f.controller, false, groups.feature(f.controller, err), f.means})
	}
	list = append(list, Feature{"sockets within memory limits", false, groups.socketFeature(err), "sockets of a node's TCP and UDP hold up to half of its memory beside its limit, and about 0.1 MiB a connection beyond (control groups of version 2)"})
	list = append(list, Feature{"small queues of sockets", false, queueFeature("/proc/sys/net/core/rmem_max"), "a tenant's raw and packet sockets, which no limit counts, queue that much twice each (sysctl net.core.rmem_max=212992)"})
	list = append(list, Feature{"room for neighbours", false, neighbourFeature("/proc/sys/net/%s/neigh/default/gc_thresh3"), "one tenant takes all entries for neighbours that this machine has, and then no node or host finds another (sysctl net.ipv4.neigh.default.gc_thresh3=65536, and of ipv6)"})
	list = append(list, Feature{"overlayfs", false, overlayFeature("/proc/filesystems"), "commands and programs do not run in nodes (modprobe overlay)"})
	_, tracked := groups.tracker()
	list = append(list, Feature{"cgroup tracking", true, tracked, "no node can be made: its processes could not be found again"})
	for _, f := range []struct{ name, path, means string }{
		{"TAP devices", "/dev/net/tun", "links cannot be impaired, no machine can join, and switches have no tap ports (modprobe tun)"},
		{"BTF", "/sys/kernel/btf/vmlinux", "routers forward by their stacks only: the fast path asks the kernel whether its table is still right"},
		{"energy meter (RAPL)", "/sys/class/powercap/intel-rapl:0/energy_uj", "sublet profile does not say what energy functions use"},
		{"seccomp filters", "/proc/sys/kernel/seccomp/actions_avail", "switches of kind openflow do not start: their processes could not be confined"},
		{"FRR zebra", FRR("zebra"), "routers with protocol: ospf fail (apt-get install frr)"},
		{"FRR ospfd", FRR("ospfd"), "routers with protocol: ospf fail (apt-get install frr)"},
	} {
		list = append(list, Feature{f.name, false, pathFeature(f.path), f.means})
	}
	list = append(list, Feature{"rings of packet sockets", false, ringFeature("/proc/sys/kernel/seccomp/actions_avail"), "tcpdump and tshark do not capture in nodes: what rings take could not be bounded"})
	return append(list, Feature{"nsenter", false, commandFeature("nsenter"), "sublet exec and OSPF do not work (apt-get install util-linux)"})
}

// ringFeature asks for what it takes to make rings in the place of a node's programs
// (seccomp_unotify(2), pidfd_getfd(2)), by the list of what filters may do.
func ringFeature(actions string) error {
	known, err := os.ReadFile(actions)
	if os.IsNotExist(err) || err == nil && !slices.Contains(strings.Fields(string(known)), "user_notif") {
		return ErrNotSupported
	}
	if err != nil {
		return err
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return ErrNotSupported
	}
	defer unix.Close(self)
	copied, err := unix.PidfdGetfd(self, self, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd: %w: %w", err, ErrNotSupported)
	}
	return unix.Close(copied)
}

// overlayFeature looks for overlayfs in the list of file systems that the kernel
// knows: the files that nodes see and write are one.
func overlayFeature(list string) error {
	if Loadable("overlay") {
		return nil
	}
	known, err := os.ReadFile(list)
	if err == nil && !slices.Contains(strings.Fields(string(known)), "overlay") {
		return ErrNotSupported
	}
	return err
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

// socketFeature asks whether what sockets hold is in the limits of memory.
func (c Cgroups) socketFeature(err error) error {
	if _, version := c.Controller("memory"); err == nil && version != 2 {
		return fmt.Errorf("memory is limited by control groups of version %d: %w", version, ErrNotSupported)
	}
	return err
}

// queueFeature compares the most that a socket may ask to queue to what Linux comes with.
func queueFeature(file string) error {
	const usual = 212992
	if most, err := readNumber(file); err != nil || most <= usual {
		return err
	} else {
		return fmt.Errorf("net.core.rmem_max is %d: %w", most, ErrNotSupported)
	}
}

// neighbourFeature asks whether there are more entries for neighbours than a tenant takes
// by the way; a machine without IPv6 has none of its.
func neighbourFeature(file string) error {
	const room = 1 << 14
	for _, family := range []string{"ipv4", "ipv6"} {
		most, err := readNumber(fmt.Sprintf(file, family))
		switch {
		case family == "ipv6" && os.IsNotExist(err):
		case err != nil:
			return err
		case most < room:
			return fmt.Errorf("net.%s.neigh.default.gc_thresh3 is %d: %w", family, most, ErrNotSupported)
		}
	}
	return nil
}

// deviceFeature makes a device of a kind, which is its module's name too.
func deviceFeature(kind string) error {
	if Loadable(kind) {
		return nil
	}
	return trial(func(c *Conn) error { return c.Do(device(kind)) })
}

// device is the least that each kind asks for.
func device(kind string) *Message {
	return NewLink("trial", kind, func(m *Message) {
		if kind == "vxlan" {
			m.Uint32(1, 1).Uint16BE(15, 4789) // VNI, port
		}
	})
}

// qdiscFeature puts a qdisc on a device.
func qdiscFeature(kind, module string) error {
	if Loadable(module) {
		return nil
	}
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
	if Loadable("sch_ingress") || Loadable("cls_bpf") {
		return nil
	}
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
