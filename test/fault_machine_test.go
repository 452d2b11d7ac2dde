package test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/datapath/vxrouter"
	product "sublet/lab"
)

// machine lists everything that networks could leave behind while their lab
// goes on: devices, queues, classes, addresses and routes of the hosts, files,
// mounts, control groups and processes. Afterwards it must equal what it was.
func (l *lab) machine(hosts ...string) []string {
	l.t.Helper()
	var seen []string
	for _, host := range hosts {
		name := labName(l.run) + "-" + host
		seen = append(seen, kernelState(host, "/run/netns/"+name, true)...)
		seen = append(seen, l.processesIn(host, "/run/netns/"+name)...)
	}
	seen = append(seen, l.files()...)
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		roots, _ := filepath.Glob(filepath.Join(mount, product.Cgroup(l.run)))
		for _, root := range roots {
			seen = append(seen, below(root, "cgroup")...)
		}
	}
	slices.Sort(seen)
	return seen
}

// files lists the run directory without what the lab itself keeps there, and
// the mounts in it.
func (l *lab) files() []string {
	seen := below(filepath.Join(l.run), "file")
	seen = slices.DeleteFunc(seen, func(line string) bool {
		return strings.HasPrefix(line, "file "+l.run+"/lab") || strings.HasPrefix(line, "file "+l.run+"/agent") || line == "file "+l.run+"/api.sock"
	})
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if point := strings.Fields(line)[1]; strings.HasPrefix(point, l.run) {
			seen = append(seen, "mount "+point)
		}
	}
	return seen
}

func below(root, what string) []string {
	var seen []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || what == "file") {
			seen = append(seen, what+" "+path)
		}
		return nil
	})
	return seen
}

// processesIn counts the processes in a network namespace by their program:
// what they are called depends on how they were started.
func (l *lab) processesIn(host, namespace string) []string {
	var home unix.Stat_t
	if err := unix.Stat(namespace, &home); err != nil {
		return nil
	}
	count := make(map[string]int)
	for _, dir := range matches("/proc/[0-9]*") {
		var st unix.Stat_t
		if err := unix.Stat(dir+"/ns/net", &st); err == nil && st.Ino == home.Ino && st.Dev == home.Dev {
			program, _ := os.Readlink(dir + "/exe") // none: it is just ending
			count[filepath.Base(program)]++
		}
	}
	var seen []string
	for name, n := range count {
		seen = append(seen, fmt.Sprintf("%s: %d processes %s", host, n, name))
	}
	return seen
}

// tunnelClasses is the first class number of tunnels.
const tunnelClasses = 0x10

// kernelState lists devices, addresses, routes, queues and classes of a
// namespace; with numbers, or without for comparing two builds of one network.
func kernelState(label, namespace string, numbers bool) []string {
	var seen []string
	say := func(format string, args ...any) { seen = append(seen, label+": "+fmt.Sprintf(format, args...)) }
	err := inNamespace(namespace, func() error {
		c, err := kernel.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		links, err := c.Links()
		names := make(map[int]string)
		for _, d := range links {
			names[d.Index] = d.Name
			line := fmt.Sprintf("device %s %s %q up=%v mtu %d gso %d", d.Name, d.Kind, d.Alias, d.Up, d.MTU, d.GSO)
			if numbers {
				line += fmt.Sprintf(" #%d peer %d", d.Index, d.Peer)
			}
			say("%s", line)
			classes, _ := c.Classes(d.Index)
			for _, k := range classes {
				htb := k.HTB()
				if uint16(k.Handle) >= tunnelClasses {
					htb = kernel.HTBClass{Priority: htb.Priority} // rates follow the frames
				}
				say("class %s %x parent %x %+v", d.Name, k.Handle, k.Parent, htb)
			}
			_, filters, _ := c.Filter(d.Index)
			say("filters %s %d", d.Name, filters)
		}
		qdiscs, err2 := c.Qdiscs()
		for _, q := range qdiscs {
			if q.Handle != 0 {
				say("qdisc %s %s %x parent %x tbf %+v fifo %d", names[q.Index], q.Kind, q.Handle, q.Parent, q.Shaper(), q.FIFO())
			}
		}
		addresses, err3 := c.Addresses(0)
		for _, a := range addresses {
			say("address %s %s peer %s metric %d", names[a.Index], a.Local, a.Reach.Addr(), a.Metric)
		}
		for _, protocol := range []uint8{unix.RTPROT_KERNEL, unix.RTPROT_BOOT, unix.RTPROT_STATIC, vxrouter.Protocol} {
			routes, err := c.Routes(unix.AF_INET, protocol)
			if err != nil {
				return err
			}
			for _, r := range routes {
				say("route %d %s via %s dev %s", protocol, r.Prefix, r.Via, names[r.Index])
			}
		}
		for _, err := range []error{err, err2, err3} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		say("unreadable: %v", err)
	}
	return seen
}

// built lists what a host has of all networks, in words that do not change
// when the same networks are built again.
func (l *lab) built(host string) []string {
	l.t.Helper()
	seen := kernelState(host, "/run/netns/"+labName(l.run)+"-"+host, false)
	for _, path := range matches(filepath.Join(l.run, "netns", host, "[^.]*")) { // what they lead to has another name each time
		seen = append(seen, kernelState(filepath.Base(path), path, false)...)
	}
	slices.Sort(seen)
	return seen
}
