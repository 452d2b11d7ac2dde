package lab

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
)

// setRelays makes every switch take off headers that are for it, as switch
// chips do: the only thing of ours on a switch. The programs are pinned, and
// go with the lab's directory.
func (l *layout) setRelays(run string) error {
	for _, node := range l.substrate.Switches {
		if err := l.setRelay(run, node); err != nil {
			return fmt.Errorf("make %s a relay: %w", node, err)
		}
	}
	return nil
}

// relayHost is a switch as the owner of pins.
func (l *layout) relayHost(run, node string) (*kernel.Host, error) {
	return kernel.NewHost(kernel.Config{Host: node, Run: dirOf(run), Namespace: filepath.Join(netnsDir, l.namespace(node)), Cgroup: filepath.Join(Cgroup(run), node)})
}

func (l *layout) setRelay(run, node string) error {
	host, err := l.relayHost(run, node)
	if err != nil {
		return err
	}
	defer host.Close()
	own, _ := Loopback(l.substrate, node)
	table, err := iplb.Open(host, own)
	if err != nil {
		return err
	}
	defer table.Close()
	pins, err := bpf.OpenPins(host, "iplb")
	if err != nil {
		return err
	}
	addresses := []netip.Addr{own}
	c, err := host.Dial("")
	if err != nil {
		return err
	}
	defer c.Close()
	for i, link := range l.substrate.Links {
		end := slices.Index(link.Ends[:], node)
		if end < 0 {
			continue
		}
		addresses = append(addresses, l.ports[i][end].Address)
		device, err := c.LinkByName(l.ports[i][end].Interface)
		if err != nil {
			return err
		}
		hook := bpf.Hook{Namespace: host.Home(), Index: device.Index, Attach: ebpf.AttachTCXIngress}
		if err := pins.Attach(fmt.Sprintf("relay_%d_%d", i, end), hook, table.Relay()); err != nil {
			return err
		}
	}
	return table.SetRelaying(iplb.Relaying{Addresses: addresses, Senders: []netip.Prefix{underlay}, Inside: []netip.Prefix{underlay}})
}
