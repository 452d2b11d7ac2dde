package test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

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
		// That process is in the node's network, so the device only has another name
		// there, until this puts it right, or the agent, which may make it anew.
		for range 3 {
			eth0, err := net.InterfaceByName("eth0")
			for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); eth0, err = net.InterfaceByName("eth0") {
				time.Sleep(50 * time.Millisecond)
			}
			if err != nil {
				return err
			}
			if err := onEth0(func(m *kernel.Message) { m.Uint32(unix.IFLA_NET_NS_PID, 1).String(unix.IFLA_IFNAME, "eth77") }); err != nil {
				return err
			}
			if now, err := net.InterfaceByIndex(eth0.Index); err == nil {
				_ = renameDevice(now.Name, "eth0")
				return errors.New("it stays")
			}
		}
		return nil
	}},
	{"move its device into the fabric", func(victims) error {
		return onEth0(func(m *kernel.Message) { m.Uint32(unix.IFLA_TARGET_NETNSID, 0).String(unix.IFLA_IFNAME, "eth77") })
	}},
	{"make a device in the fabric", func(victims) error { return makeVeth(unix.IFLA_TARGET_NETNSID) }},
	{"make a device that leads into the fabric", func(victims) error { return makeVeth(unix.IFLA_LINK_NETNSID) }},
	{"make a socket of virtual machines", func(victims) error { return makeSocket(unix.AF_VSOCK) }},
	{"make a socket of the kernel's ciphers", func(victims) error { return makeSocket(unix.AF_ALG) }},
	{"see devices of the host", func(victims) error {
		devices, err := net.Interfaces()
		for _, d := range devices {
			if d.Name != "lo" && d.Name != "eth0" && d.Name != "eth1" && !strings.HasPrefix(d.Name, "vm-") { // a machine's TAP device
				return nil
			}
		}
		return errors.Join(err, errors.New("only its own"))
	}},
}

func makeSocket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return err
	}
	unix.Close(fd)
	return nil // refused for another reason: there are such sockets
}

func renameDevice(from, to string) error {
	return exec.Command("ip", "link", "set", from, "name", to).Run()
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
		if err == nil { // an empty one of their own shows nothing
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
