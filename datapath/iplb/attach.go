package iplb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// Spread makes a device towards the fabric spread what it sends, and hear the
// probes that come back. The links are pinned: they outlive the caller.
func (t *Table) Spread(host *kernel.Host, device string) error {
	return errors.Join(
		t.attach(host, device, "echo", ebpf.AttachTCXIngress, t.Echo()),
		t.attach(host, device, "tx", ebpf.AttachTCXEgress, t.Transmit()),
	)
}

// Choose makes a device towards the fabric send packets by their paths, without
// hearing probes.
func (t *Table) Choose(host *kernel.Host, device string) error {
	return t.attach(host, device, "tx", ebpf.AttachTCXEgress, t.Transmit())
}

// TakeOff makes a device from the fabric take headers off.
func (t *Table) TakeOff(host *kernel.Host, device string) error {
	return t.attach(host, device, "relay", ebpf.AttachTCXIngress, t.Relay())
}

func (t *Table) attach(host *kernel.Host, device, what string, at ebpf.AttachType, p *ebpf.Program) error {
	conn, err := host.Dial("")
	if err != nil {
		return err
	}
	defer conn.Close()
	link, err := conn.LinkByName(device)
	if kernel.NotFound(err) {
		return fmt.Errorf("there is no device %s: ip link lists them", device)
	}
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	hook := bpf.Hook{Namespace: host.Home(), Index: link.Index, Attach: at, First: at == ebpf.AttachTCXIngress}
	return t.pins.Attach(fmt.Sprintf("link_%s_%d", what, link.Index), hook, p)
}

// Repin pins again what somebody unpinned or unmounted; devices are for
// Choose and Spread.
func (t *Table) Repin() error { return t.pins.Repin() }

// Chooses says whether a device, by its number, has the program of Choose.
func (t *Table) Chooses(index int) (bool, error) {
	return t.pins.Attached(fmt.Sprintf("link_tx_%d", index), index, t.Transmit())
}

// Left says whether a process left a table.
func Left(host *kernel.Host) (bool, error) {
	left, err := bpf.Left(host, "iplb")
	if err != nil || !left {
		return false, err
	}
	pins, err := os.ReadDir(filepath.Join(host.Dir("bpf"), "iplb"))
	return len(pins) > 0, err
}

// Unpin detaches everything from all devices and removes the table.
func Unpin(host *kernel.Host) error {
	pins, err := bpf.OpenPins(host, "iplb")
	if err != nil {
		return err
	}
	return errors.Join(pins.Unpin(), pins.Close())
}

// UnpinSender and UnpinRelay detach what sends by paths, and what takes headers
// off; the table goes with the last.
func UnpinSender(host *kernel.Host) error { return detach(host, "link_echo_", "link_tx_") }
func UnpinRelay(host *kernel.Host) error  { return detach(host, "link_relay_") }

// detach removes the links whose names begin so, and all if no other is left.
func detach(host *kernel.Host, kinds ...string) error {
	pins, err := bpf.OpenPins(host, "iplb")
	if err != nil {
		return err
	}
	defer pins.Close()
	names, err := pins.Names()
	if err != nil {
		return err
	}
	var going, staying []string
	for _, n := range names {
		switch {
		case slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(n, kind) }):
			going = append(going, n)
		case strings.HasPrefix(n, "link_"):
			staying = append(staying, n)
		}
	}
	if len(staying) == 0 {
		return pins.Unpin()
	}
	return pins.Remove(going...)
}
