package vnode

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/plan"
	"sublet/vnet"
)

// A node of kind vm is a virtual machine: QEMU, which the node's supervisor starts
// in the node as it starts programs, so it is held by the node's control group and
// namespaces, and ends with the node. What it needs of the host it gets as open
// files: disk, seed, and a TAP device for each interface. It runs without any right
// and with system calls forbidden that it does not need, for whoever breaks out of
// the emulation is the tenant's machine.

// machine is what the supervisor needs to know of one.
type machine struct {
	CPUs    int    `json:"cpus"`
	Memory  int64  `json:"memory"`           // of its kernel, in MiB
	Layer   uint   `json:"layer"`            // descriptor of what it writes, in the format qcow2
	Disk    uint   `json:"disk"`             // descriptor of its image
	Console string `json:"console"`          // path of a socket
	Asleep  string `json:"asleep,omitempty"` // file that it goes on from, and writes when it is to; "": it keeps nothing
	Door    string `json:"door,omitempty"`   // path of a socket, of one that keeps something
	Comes   bool   `json:"comes,omitempty"`  // from another host, while it runs there
	KVM     bool   `json:"kvm,omitempty"`
}

// emulator is QEMU's program, for machines like this one.
const emulator = "qemu-system-x86_64"

// Accelerators that Machines names.
const (
	AcceleratorKVM  = "kvm"
	AcceleratorNone = "software"
)

// Machines says what runs machines on this host, and why it is not KVM; "": nothing
// does, and why.
func Machines() (accelerator, why string) {
	for _, name := range []string{emulator, "qemu-img"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", name + " is not installed: apt-get install qemu-system-x86 qemu-utils"
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return "", "there are no TAP devices: modprobe tun"
	}
	if why := withoutKVM(); why != "" {
		return AcceleratorNone, why
	}
	return AcceleratorKVM, ""
}

const vhostNet = "/dev/vhost-net"

// Vhost says why frames of machines pass their emulator, and not the kernel alone; "":
// they do not.
func Vhost() string {
	if accelerator, why := Machines(); accelerator != AcceleratorKVM {
		return why
	}
	f, err := os.OpenFile(vhostNet, os.O_RDWR, 0)
	if err != nil {
		return vhostNet + " cannot be used: modprobe vhost_net: " + errors.Unwrap(err).Error()
	}
	f.Close()
	return ""
}

// kvmCreate is KVM_CREATE_VM (linux/kvm.h).
const kvmCreate = 0xae01

// withoutKVM says why machines are emulated in software. A device is no sign that
// it works: processors of virtual machines may lack what it needs.
var withoutKVM = sync.OnceValue(func() string {
	const device, everybody = "/dev/kvm", 0o006
	info, err := os.Stat(device)
	if err != nil {
		return "there is no " + device
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return device + " cannot be used: " + errors.Unwrap(err).Error()
	}
	defer f.Close()
	one, err := unix.IoctlRetInt(int(f.Fd()), kvmCreate)
	if err != nil {
		return device + " makes no machine: " + err.Error()
	}
	unix.Close(one)
	if info.Mode()&everybody != everybody {
		return device + " is not for all users, as whom machines run: chmod 666 " + device
	}
	return ""
})

// machineLayer opens what a machine writes: new, or what it has kept.
func (p *Part) machineLayer(s plan.Setup, disk *image.Disk, size int64) (*os.File, error) {
	if !s.Keeps() {
		return p.Images.NewLayer(size)
	}
	now := note{Serial: s.Serial, Image: s.Image, Size: size, Machine: true}
	var err error
	if now.Below, err = below(disk); err != nil {
		return nil, err
	}
	if err := p.keep(s.Key(), now, func(f *os.File) error { return image.FormatLayer(f, size) }); err != nil {
		return nil, err
	}
	f, err := openAlone(filepath.Join(p.keptDir(s.Key()), diskFile))
	if err != nil {
		return nil, err
	}
	if err := image.CheckLayer(f, size); err != nil {
		f.Close()
		return nil, fmt.Errorf("the disk that it kept: %w", err)
	}
	return f, nil
}

// mostProcessors of a machine: more have to be asked for by other means.
const mostProcessors = 64

// programsOf are what a node's supervisor starts.
func programsOf(s vnet.Setup) []vnet.Program {
	if s.Machine() {
		return []vnet.Program{{Cmd: []string{emulator}, Restart: cmp.Or(s.Restart, vnet.RestartOnFailure)}}
	}
	return s.Run
}

// openMachine opens what a machine is made of, for a supervisor that finds the
// files behind first descriptors.
func (p *Part) openMachine(s plan.Setup, first int) (files []*os.File, m *machine, err error) {
	accelerator, why := Machines()
	if accelerator == "" {
		return nil, nil, fmt.Errorf("this host runs no machines: %s", why)
	}
	if p.Images == nil {
		return nil, nil, errors.New("this host has no images")
	}
	group := p.host.Group(s.Key())
	memory := group.Memory() - int64(vnet.MachineReserve)
	if memory <= 0 {
		return nil, nil, errors.New("this host cannot limit the memory of nodes, which machines need")
	}
	disk, err := p.Images.OpenDisk(s.Image, s.DiskFormat())
	if err != nil {
		return nil, nil, err
	}
	size := cmp.Or(int64(s.Disk), disk.Size)
	if size < disk.Size {
		disk.File.Close()
		return nil, nil, fmt.Errorf("its disk of %s is smaller than the image, which has %s", s.Disk, vnet.Bytes(disk.Size))
	}
	layer, err := p.machineLayer(s, disk, size)
	if err != nil {
		disk.File.Close()
		return nil, nil, err
	}
	asleep := ""
	if s.Keeps() {
		asleep = p.memoryPath(s.Key())
	}
	const core = 1000
	return []*os.File{disk.File, layer}, &machine{
		CPUs: min(max(1, int(group.CPU()+core-1)/core), mostProcessors), Memory: memory >> 20,
		Disk: uint(first), Layer: uint(first + 1), Console: p.consolePath(s.Key()), Asleep: asleep, Door: p.doorPath(s.Key()), Comes: s.Live == plan.LiveComes, KVM: accelerator == AcceleratorKVM,
	}, nil
}
