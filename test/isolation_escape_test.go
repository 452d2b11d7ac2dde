package test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// victims are what an attacker is told of the world outside.
type victims struct {
	run, host, secret, public, abstract string
}

// escape is something that must fail inside a node.
type escape struct {
	what string
	try  func(victims) error
}

// escapeInside tries them all and says which succeeded.
func escapeInside(args []string) error {
	v := victims{run: args[0], host: args[1], secret: args[2], public: args[3], abstract: args[4]}
	runtime.LockOSThread()
	for _, e := range slices.Concat(fileEscapes, processEscapes, kernelEscapes, networkEscapes, mountEscapes) {
		if e.try(v) == nil {
			fmt.Println(e.what)
		}
	}
	return nil
}

func openToRead(path string) error {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		_, err = f.Read(make([]byte, 1))
	}
	return err
}

func openToWrite(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func connect(path string) error {
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return err
}

var fileEscapes = []escape{
	{"mount in the session's namespace", func(victims) error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") }},
	{"read a file of root's", func(v victims) error { return openToRead(v.secret) }},
	{"write a file of root's", func(v victims) error { return openToWrite(v.public) }},
	{"make a file in /etc", func(victims) error { return os.Mkdir("/etc/sublet-escape", 0o700) }},
	{"make a file in the run directory", func(v victims) error { return os.WriteFile(v.run+"/x", nil, 0o600) }},
	{"see namespaces in the run directory", func(v victims) error { _, err := os.ReadDir(v.run + "/netns"); return err }},
	{"call the server", func(v victims) error { return connect(v.run + "/api.sock") }},
	{"call an agent", func(v victims) error { return connect(v.run + "/agent-h1.sock") }},
	{"call the store", func(v victims) error { return connect(v.run + "/lab/data/etcd/etcd.sock") }},
	{"call an abstract socket of a host", func(v victims) error { return connect("@" + v.abstract) }},
	{"make a disk's device", func(victims) error { return unix.Mknod("/tmp/sublet-escape", unix.S_IFBLK|0o600, 0x0800) }},
	{"open memory", func(victims) error { return errors.Join(openToRead("/dev/mem"), openToRead("/dev/kmem")) }},
	{"open a disk", func(victims) error { return errors.Join(openToRead("/dev/vda"), openToRead("/dev/sda")) }},
}

var processEscapes = []escape{
	{"see processes of the host", func(victims) error {
		all, err := filepath.Glob("/proc/[0-9]*")
		if err == nil && len(all) <= 3 { // the session's first, nsenter or what it became, and this
			err = errors.New("only its own")
		}
		return err
	}},
	{"signal the session's first process", func(victims) error { return unix.Kill(1, unix.SIGURG) }},
	{"trace the session's first process", func(victims) error { return unix.PtraceAttach(1) }},
	{"look into the session's first process", func(victims) error { return openToRead("/proc/1/environ") }},
	{"open its namespaces", func(victims) error { return openToRead("/proc/1/ns/net") }},
	{"walk through its root", func(victims) error { _, err := os.ReadDir("/proc/1/root/"); return err }},
	{"raise a hard limit", func(victims) error {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
			return err
		}
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: now.Max + 1, Max: now.Max + 1})
	}},
	{"raise its priority", func(victims) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
	{"hide from the memory killer", func(victims) error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) }},
	{"raise its control group's limits", func(victims) error { return raiseGroup() }},
}

// raiseGroup mounts control groups in a place of its own and writes there; in
// hierarchies that Sublet does not use that is another group's, perhaps all's.
func raiseGroup() error {
	return eachHierarchy(func(dir string) bool {
		return os.WriteFile(dir+"/pids.max", []byte("max"), 0) == nil || os.WriteFile(dir+"/memory.limit_in_bytes", []byte("-1"), 0) == nil ||
			os.WriteFile(dir+"/memory.max", []byte("max"), 0) == nil
	})
}

func eachHierarchy(escaped func(dir string) bool) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP); err != nil {
		return err
	}
	err := errors.New("no hierarchy helps")
	for _, options := range []string{"pids", "memory", "cpu,cpuacct", "cpu", "freezer", ""} {
		kind := map[bool]string{true: "cgroup2", false: "cgroup"}[options == ""]
		if unix.Mount("none", "/mnt", kind, 0, options) != nil {
			continue
		}
		if escaped("/mnt") {
			err = nil
		}
		_ = unix.Unmount("/mnt", unix.MNT_DETACH)
	}
	return err
}

var kernelEscapes = []escape{
	{"load a program into the kernel", func(victims) error {
		attributes := make([]byte, 128)
		attributes[0] = 1 // a socket filter
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attributes[0])), uintptr(len(attributes)))
		if errno == unix.EPERM {
			return errno
		}
		return nil // refused for another reason: it was allowed to ask
	}},
	{"set the clock", func(victims) error {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &now)
		return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
	}},
	{"set the host's name", func(victims) error { return unix.Sethostname([]byte("escaped")) }},
	{"read the kernel's log", func(victims) error { _, err := unix.Klogctl(3, make([]byte, 100)); return err }},
	{"load a module", func(victims) error { _, err := os.Stat("/x"); return errors.Join(err, unix.FinitModule(0, "", 0)) }},
	{"stop swapping", func(victims) error {
		_, _, errno := unix.Syscall(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(unsafe.StringData("/swap\x00"))), 0, 0)
		if errno == unix.EPERM {
			return errno
		}
		return nil
	}},
	{"set a value of the whole kernel's", func(victims) error { return writableSettings() }},
}

// writableSettings looks for one that is neither the node's network's nor the
// user namespace's own.
func writableSettings() error {
	err := errors.New("none")
	_ = filepath.WalkDir("/proc/sys", func(path string, d fs.DirEntry, failed error) error {
		if path == "/proc/sys/net" || path == "/proc/sys/user" {
			return filepath.SkipDir
		}
		if failed == nil && !d.IsDir() && openToWrite(path) == nil {
			fmt.Println("writable:", path)
			err = nil
		}
		return nil
	})
	return err
}

var networkEscapes = []escape{
	{"enter a host's network", func(v victims) error {
		f, err := os.Open(v.host)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
	}},
	{"move its device into the host's network", func(v victims) error {
		f, err := os.Open(v.host)
		if err != nil {
			return err
		}
		defer f.Close()
		return onEth0(func(m *kernel.Message) { m.Uint32(unix.IFLA_NET_NS_FD, uint32(f.Fd())) })
	}},
	{"move its device to the first process", func(victims) error {
		return onEth0(func(m *kernel.Message) { m.Uint32(unix.IFLA_NET_NS_PID, 1).String(unix.IFLA_IFNAME, "eth77") })
	}},
	{"move its device into the fabric", func(victims) error {
		return onEth0(func(m *kernel.Message) { m.Uint32(unix.IFLA_TARGET_NETNSID, 0).String(unix.IFLA_IFNAME, "eth77") })
	}},
	{"make a device in the fabric", func(victims) error { return makeVeth(unix.IFLA_TARGET_NETNSID) }},
	{"make a device that leads into the fabric", func(victims) error { return makeVeth(unix.IFLA_LINK_NETNSID) }},
	{"see devices of the host", func(victims) error {
		devices, err := net.Interfaces()
		for _, d := range devices {
			if d.Name != "lo" && d.Name != "eth0" && d.Name != "eth1" {
				return nil
			}
		}
		return errors.Join(err, errors.New("only its own"))
	}},
}

func onEth0(change func(*kernel.Message)) error {
	c, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	eth0, err := c.LinkByName("eth0")
	if err != nil {
		return err
	}
	m := kernel.ChangeLink(eth0.Index)
	change(m)
	return c.Do(m)
}

// makeVeth names the fabric by the number that eth0 shows for it.
func makeVeth(attribute uint16) error {
	c, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Do(kernel.NewLink("escape0", "veth", func(*kernel.Message) {}).Uint32(attribute, 0))
}

// In a mount namespace of its own a tenant may mount; not what shows more.
var mountEscapes = []escape{
	{"uncover the run directory", func(v victims) error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		_ = unix.Unmount(v.run, unix.MNT_DETACH)
		_ = unix.Mount(filepath.Dir(v.run), "/mnt", "", unix.MS_BIND, "")
		_, err := os.ReadDir(v.run + "/netns")
		_, other := os.ReadDir("/mnt/" + filepath.Base(v.run) + "/netns")
		if err == nil || other == nil {
			return nil
		}
		return err
	}},
	{"make /sys writable", func(victims) error {
		return unix.Mount("", "/sys", "", unix.MS_REMOUNT|unix.MS_BIND, "")
	}},
	{"make the kernel's settings writable", func(victims) error {
		return unix.Mount("", "/proc/sys/kernel", "", unix.MS_REMOUNT|unix.MS_BIND, "")
	}},
	{"mount another /proc", func(victims) error { return unix.Mount("proc", "/mnt", "proc", 0, "") }},
	{"mount a writable /sys", func(victims) error { return unix.Mount("sysfs", "/mnt", "sysfs", 0, "") }},
	{"mount the programs' file system", func(victims) error {
		err := unix.Mount("bpf", "/mnt", "bpf", 0, "")
		if err == nil { // an empty one of his own shows nothing
			if pins, _ := os.ReadDir("/mnt"); len(pins) == 0 {
				return errors.New("empty")
			}
		}
		return err
	}},
	{"mount a disk", func(victims) error { return unix.Mount("/dev/vda", "/mnt", "ext4", 0, "") }},
	{"mount debugfs", func(victims) error { return unix.Mount("none", "/mnt", "debugfs", 0, "") }},
	{"mount tracefs", func(victims) error { return unix.Mount("none", "/mnt", "tracefs", 0, "") }},
}

// ofRoot is what the operator's own networks allow besides, whose root is the
// machine's user 0, without its rights: that user's files, the files by which
// a control group is limited, and the session's first process.
var ofRoot = []string{"read a file of root's", "write a file of root's", "make a file in /etc", "signal the session's first process", "raise its control group's limits"}

// A tenant inside his node is himself at most, and there is no way out of it:
// to files, sockets, processes, namespaces, networks, limits or the kernel.
func TestNoWayOutOfANode(t *testing.T) {
	l := newLab(t, "demo")
	c := l.tenants(alice)[0]
	c.up(pair("net", "max: 100Mbit"))
	l.up(pair("net", "max: 100Mbit"))
	v := l.victims()
	args := []string{"--", l.attackProgram(), insideCommand, "escape", v.run, v.host, v.secret, v.public, v.abstract}
	for who, r := range map[string]result{
		"tenant":            c.sublet(append([]string{"exec", "net/a"}, args...)...),
		"operator as guest": l.sublet(append([]string{"exec", "uid12345/net/a"}, args...)...),
	} {
		if r.code != 0 || r.out != "" {
			t.Errorf("%s: exit code %d %s, could:\n%s", who, r.code, r.err, r.out)
		}
	}
	r := l.sublet(append([]string{"exec", "root/net/a"}, args...)...)
	for _, what := range strings.Split(strings.TrimSpace(r.out), "\n") {
		if !slices.Contains(ofRoot, what) {
			t.Errorf("the operator's own: could %s", what)
		}
	}
	_ = os.Remove("/etc/sublet-escape")
	l.settled()
}

// victims makes them.
func (l *lab) victims() victims {
	l.t.Helper()
	v := victims{run: l.run, host: l.host("h1"), abstract: "sublet-escape-" + labName(l.run)}
	v.secret, v.public = l.file("secret", "s"), l.file("public", "p")
	if err := os.Chmod(v.secret, 0o600); err != nil {
		l.t.Fatal(err)
	}
	for _, space := range []string{here, v.host} {
		within(l.t, space, func() error {
			socket, err := net.Listen("unix", "@"+v.abstract)
			if err == nil {
				l.t.Cleanup(func() { socket.Close() })
			}
			return err
		})
	}
	return v
}
