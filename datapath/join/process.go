package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

const (
	startTime = 20 * time.Second // in which a process answers, on a busy machine
	pollEvery = 5 * time.Millisecond

	processCPU    = 1000      // thousandths of a processor, whatever comes to the port
	processMemory = 256 << 20 // its queues hold at most 3 times 1024 packets of 64 KiB
)

// begin starts the process in its control group with a socket of the host and a
// device of the node, and tells it the keys.
func (p *Part) begin(ctx context.Context, ns *os.File, j plan.Join) error {
	group := p.group(j.Key())
	if err := group.Make(); err != nil {
		return err
	}
	if err := errors.Join(group.SetCPU(processCPU), group.SetMemory(processMemory)); err != nil {
		return err
	}
	files, err := p.open(ns, j)
	if err != nil {
		return err
	}
	defer closeAll(files)
	cmd, err := kernel.Launch{
		Groups: group.Files(), Namespace: p.host.Path(j.Key()), Argv: []string{kernel.Self, Command},
	}.Command()
	if err != nil {
		return err
	}
	words, err := os.OpenFile(p.file(j.Key(), "log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer words.Close()
	cmd.Stderr, cmd.ExtraFiles = words, files
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return p.await(ctx, j, ended)
}

func (p *Part) await(ctx context.Context, j plan.Join, ended <-chan error) error {
	p.keys.Lock()
	defer p.keys.Unlock()
	k, err := p.keysOf(j)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if err = p.configure(j, k); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("its process does not answer: %w", err)
		case err := <-ended:
			words, _ := os.ReadFile(p.file(j.Key(), "log"))
			return fmt.Errorf("its process ends at once: %v: %s", err, bytes.TrimSpace(words[:min(len(words), 500)]))
		case <-time.After(pollEvery):
		}
	}
}

// open opens what the process gets: its socket of UDP, its device, and the socket
// by which it is told the keys.
func (p *Part) open(ns *os.File, j plan.Join) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	add := func(f *os.File, err error) error {
		if err == nil {
			files = append(files, f)
		}
		return err
	}
	err = kernel.In(p.host.Home(), func() error { return add(socketAt(j.At)) })
	if err != nil {
		return files, fmt.Errorf("open port %s of UDP: %w", j.At, err)
	}
	err = kernel.In(ns, func() error { return add(openTUN(device)) })
	if err != nil {
		return files, fmt.Errorf("make device %s: %w", device, err)
	}
	return files, add(p.listen(j.Key()))
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func socketAt(at netip.AddrPort) (*os.File, error) {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.File()
}

// openTUN makes the device in the calling thread's namespace. It goes with the
// last who has the file open.
func openTUN(name string) (*os.File, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// listen makes the socket for keys in the join's directory, which only root enters.
func (p *Part) listen(key string) (*os.File, error) {
	if err := os.Remove(p.file(key, "socket")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	dir, err := os.Open(p.dir(key))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/socket", dir.Fd()), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	return l.File()
}
