package bridge

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// number is a port's: that of its device eth<number>.
func number(device string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(device, "eth"))
	if err != nil || n < 0 || n >= maxPorts || device != "eth"+strconv.Itoa(n) {
		return 0, fmt.Errorf("%q is no port of a switch", device)
	}
	return n, nil
}

func device(number int) string { return "eth" + strconv.Itoa(number) }

// pinOf names the pin of a port's link.
func pinOf(number int) string { return "port_" + strconv.Itoa(number) }

// wantPort is a port as the program has it.
func wantPort(p plan.SwitchPort, index int, slot uint32) (vswitchPort, error) {
	want := vswitchPort{
		Index: uint32(index), Slot: slot, Addresses: uint32(p.MACs), Broadcast: uint32(p.Broadcast), Unknown: uint32(p.Unknown),
	}
	if p.Blocked {
		want.Blocked = 1
	}
	for i := range want.To {
		if len(p.To) == 0 {
			want.To[i] = 1<<64 - 1
		}
	}
	for _, to := range p.To {
		n, err := number(to)
		if err != nil {
			return want, err
		}
		want.To[n/64] |= 1 << (n % 64)
	}
	return want, nil
}

// setPort writes what the program needs of a port, then puts it there.
func (p *Part) setPort(item plan.SwitchPort) error {
	key := plan.SwitchNamespace(item.Lease, item.Switch, item.Type)
	n, err := number(item.Interface)
	if err != nil {
		return err
	}
	ns, err := p.host.Open(key)
	if err != nil {
		return err
	}
	defer ns.Close()
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := c.LinkByName(item.Interface)
	if err != nil {
		return fmt.Errorf("find its device: %w", err)
	}
	t, err := p.tables(key)
	if err != nil {
		return err
	}
	fabric, err := p.host.NamespaceOf(c, plan.Fabric(item.Lease))
	if err != nil {
		return err
	}
	slot := hop.SlotOf(l.Peer, l.PeerNS, fabric)
	want, err := wantPort(item, l.Index, slot)
	if err != nil {
		return err
	}
	if err := t.setPort(n, want); err != nil {
		return err
	}
	if err := t.pins.Attach(pinOf(n), bpf.Hook{Namespace: ns, Index: l.Index, Attach: ebpf.AttachTCXIngress, First: true}, t.program); err != nil {
		return err
	}
	return t.joined.Join(ns, l.Index, slot, uint32(n))
}

// setPort writes a port's row. When it opens or closes, what was learned may
// be wrong everywhere.
func (t *tables) setPort(n int, want vswitchPort) error {
	var have vswitchPort
	if err := t.Ports.Lookup(uint32(n), &have); err != nil {
		return err
	}
	if err := t.setNumber(n, want.Index); err != nil {
		return err
	}
	if have != want {
		if err := t.Ports.Put(uint32(n), want); err != nil {
			return err
		}
	}
	if have.Blocked != want.Blocked && have.Index != 0 {
		if err := t.forget(-1); err != nil {
			return err
		}
	}
	return t.change(func(s *vswitchSetting) { s.Ports = max(s.Ports, uint32(n)+1) })
}

// setNumber makes a device, and no other, port n; 0: none.
func (t *tables) setNumber(n int, index uint32) error {
	have, err := read[uint32, uint32](t.Numbers)
	if err != nil {
		return err
	}
	for i, number := range have {
		if number == uint32(n) && i != index {
			if err := missing(t.Numbers.Delete(i)); err != nil {
				return err
			}
		}
	}
	if index == 0 {
		return nil
	}
	if was, there := have[index]; !there || was != uint32(n) {
		if err := t.Numbers.Put(index, uint32(n)); err != nil {
			return err
		}
	}
	return t.Guesses.Put(index%t.Guesses.MaxEntries(), uint32(n))
}

// deletePort takes the program and the row away. A switch that is gone took
// them along.
func (p *Part) deletePort(item plan.SwitchPort) error {
	key := plan.SwitchNamespace(item.Lease, item.Switch, item.Type)
	if left, err := bpf.Left(p.host, pinsOf(key)); err != nil || !left {
		return err
	}
	n, err := number(item.Interface)
	if err != nil {
		return nil // there never was such a port
	}
	t, err := p.tables(key)
	if err != nil {
		return err
	}
	var row vswitchPort
	if err := t.Ports.Lookup(uint32(n), &row); err != nil {
		return err
	}
	return errors.Join(
		t.joined.Leave(row.Slot), t.pins.Remove(pinOf(n)), t.setNumber(n, 0), t.Ports.Put(uint32(n), vswitchPort{}), t.forget(n),
		t.Counters.Put(uint32(n), make([]vswitchCount, ebpf.MustPossibleCPU())),
	)
}
