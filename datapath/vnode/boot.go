package vnode

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sublet/vnet"
)

// What of a machine's memory, in MiB, the translations of its code may take where
// there is no KVM: QEMU takes a quarter of the machine's without a bound.
const translations = 48

// boot starts a machine. Its descriptors are streams, disk, layer, seed, those of
// its interfaces, its control, and what it goes on from, if there is such a thing.
func (s *supervisor) boot(group string, out *os.File) (child *os.Process, err error) {
	nics, err := s.interfaces()
	defer closeTaps(nics)
	if err != nil {
		return nil, err
	}
	seed, err := s.seed(nics)
	if err != nil {
		return nil, fmt.Errorf("make its seed: %w", err)
	}
	defer seed.Close()
	in, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	files := []*os.File{in, out, out, s.disk, s.layer, seed}
	for _, n := range nics {
		files = append(files, n.files...)
	}
	next, theirs, err := openControl()
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer theirs.Close()
	files = append(files, theirs)
	var memory *os.File
	from := begins
	if s.comes.Load() {
		from = comes
	} else if memory = s.asleep(); memory != nil {
		defer memory.Close()
		files, from = append(files, memory), resumes
	}
	one := s.session
	one.Argv, one.Powerless, one.Env, one.Dir = s.arguments(nics, from), true, nil, ""
	if s.Owner == 0 {
		one.User = nobody
	}
	if child, err = s.startIn(group, one, files); err != nil {
		ours.Close()
		next.close()
		return nil, err
	}
	s.console.started(ours)
	s.emulator.Store(int64(child.Pid))
	s.nics = nics
	s.direct(next, memory != nil)
	return child, nil
}

// beginning is what a machine is when it is started.
type beginning int

// One that begins starts from its disk, one that resumes goes on from a file, one that
// comes from another host is what its supervisor takes.
const (
	begins beginning = iota
	resumes
	comes
)

// direct begins to speak to the emulator that runs now.
func (s *supervisor) direct(c *control, resume bool) {
	if former := s.control.Swap(c); former != nil {
		former.close()
	}
	s.resuming.Store(resume)
	s.whole.Store(false)
	go func() {
		if err := c.ask("qmp_capabilities", nil, nil); err != nil {
			c.close() // whatever is asked later is refused
			return
		}
		close(c.ready)
		if resume {
			s.goOn(c)
		}
	}()
}

// nobody is the user as whom machines run of networks that are root's.
const nobody = 65534

// First descriptors of a machine behind its streams.
const (
	diskFD = 3 + iota
	layerFD
	seedFD
	nicFD
)

// sentDisk names what a machine writes. What is sent with a machine that moves while it
// runs is told by the names of drives, which QEMU gives no other kind of disk.
const sentDisk = "layer"

// arguments are QEMU's. Nothing is there that is not stated, and of its files it
// opens none by name but its own firmware.
func (s *supervisor) arguments(nics []nic, from beginning) []string {
	m := s.Machine
	accelerator, processor := fmt.Sprintf("tcg,tb-size=%d", translations), "max"
	if m.KVM {
		accelerator, processor = "kvm", "host"
	}
	list := []string{
		emulator, "-name", s.Node, "-no-user-config", "-nodefaults", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-machine", "pc,graphics=off,vmport=off,usb=off", "-accel", accelerator, "-cpu", processor,
		"-smp", fmt.Sprint(m.CPUs), "-m", fmt.Sprint(m.Memory),
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-object", "rng-builtin,id=rng", "-device", "virtio-rng-pci,rng=rng",
	}
	for i, fd := range []int{diskFD, layerFD, seedFD} {
		list = append(list, "-add-fd", fmt.Sprintf("fd=%d,set=%d", fd, i+1))
	}
	for _, node := range []string{
		"driver=file,node-name=disk-file,filename=/dev/fdset/1,read-only=on,locking=off",
		base(s.given.DiskFormat()),
		"driver=file,node-name=seed-file,filename=/dev/fdset/3,read-only=on,locking=off",
		"driver=raw,node-name=seed,file=seed-file,read-only=on",
	} {
		list = append(list, "-blockdev", node)
	}
	list = append(list, "-drive", "if=none,id="+sentDisk+",format=qcow2,auto-read-only=off,file.driver=file,file.filename=/dev/fdset/2,file.locking=off,backing=disk")
	list = append(list, "-device", "virtio-blk-pci,drive="+sentDisk+",bootindex=0,werror=report", "-device", "virtio-blk-pci,drive=seed")
	fd := nicFD
	for i, n := range nics {
		host := fmt.Sprintf("tap,id=net%d,fd=%d", i, fd)
		if len(n.files) > 1 {
			host += fmt.Sprintf(",vhost=on,vhostfd=%d", fd+1)
		}
		fd += len(n.files)
		list = append(list, "-netdev", host, "-device", fmt.Sprintf("virtio-net-pci,netdev=net%d,mac=%s,host_mtu=%d,romfile=", i, n.mac(), n.MTU))
	}
	list = append(list, "-chardev", fmt.Sprintf("socket,id=control,fd=%d", fd), "-mon", "chardev=control,mode=control")
	switch from {
	case resumes:
		list = append(list, "-incoming", fmt.Sprintf("fd:%d", fd+1))
	case comes:
		list = append(list, "-incoming", "defer", "-S")
	}
	return list
}

// base is the image as QEMU takes it, which may not follow the name of a backing
// file in it. An image that has one is refused anyway when it is opened.
func base(format string) string {
	if format == vnet.DiskQCOW2 {
		return `{"driver":"qcow2","node-name":"disk","file":"disk-file","read-only":true,"backing":null}`
	}
	return "driver=raw,node-name=disk,file=disk-file,read-only=on"
}

// mac is an interface's address as QEMU takes it.
func (n nic) mac() string {
	var text []string
	for _, b := range n.Hardware {
		text = append(text, fmt.Sprintf("%02x", b))
	}
	return strings.Join(text, ":")
}

// seed is an open image of a file system with what a machine reads when it begins.
func (s *supervisor) seed(nics []nic) (*os.File, error) {
	names, err := os.ReadFile(s.Hosts)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return seedOf(s.Node, s.given, nics, string(names)).image()
}

// closeTaps lets go of devices, which stay as long as the machine has them.
func closeTaps(nics []nic) {
	for _, n := range nics {
		closeAll(n.files)
	}
}
