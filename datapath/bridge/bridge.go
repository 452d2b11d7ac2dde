// Package vswitch builds virtual switches of layer 2: a namespace of the
// provider's holds the ports (the far ends of VxLinks), and a program at the
// ingress of each sends frames on to the others.
//
//	l<i>b of a fabric ==veth== eth0 --[vswitch: MAC table]--> eth1 ==veth== l<j>a
//
// What no program takes ends in a namespace without addresses and forwarding:
// the failure is closed.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part does switches of type kernel and their ports. Do may be called concurrently
// for different items; Observe waits until no Do is running.
type Part struct {
	host *kernel.Host
	busy sync.RWMutex // Do: read, Observe: write

	mu   sync.Mutex
	open map[string]*tables // by switch
}

// New makes the part for one host.
func New(host *kernel.Host) *Part { return &Part{host: host, open: make(map[string]*tables)} }

// Kinds are vswitch and switchport.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindSwitch, plan.KindSwitchPort} }

// Close lets go of what is open. What is pinned stays and forwards.
func (p *Part) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, t := range p.open {
		t.close()
		delete(p.open, key)
	}
}

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) (err error) {
	p.busy.RLock()
	defer p.busy.RUnlock()
	switch item := step.Item.(type) {
	case plan.Switch:
		if step.Op == plan.Delete {
			err = p.deleteSwitch(item.Key())
		} else {
			err = p.setSwitch(item)
		}
	case plan.SwitchPort:
		if step.Op == plan.Delete {
			err = p.deletePort(item)
		} else {
			err = p.setPort(item)
		}
	default:
		return fmt.Errorf("vswitch does not do %s", step.Item.Kind())
	}
	if err != nil {
		return fmt.Errorf("%s switch %s: %w", step.Op, step.Item.Key(), err)
	}
	return nil
}

// setSwitch makes the namespace and the tables, and fills in what is planned.
func (p *Part) setSwitch(s plan.Switch) error {
	if err := p.host.MakeSilent(s.Key()); err != nil {
		return err
	}
	t, err := p.tables(s.Key())
	if err != nil {
		return err
	}
	if err := t.setAgeing(s.Ageing); err != nil {
		return err
	}
	return t.setStations(s.Stations)
}

// tables opens a switch's tables and programs, or makes them.
func (p *Part) tables(key string) (*tables, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.open[key]; t != nil {
		return t, nil
	}
	pins, err := bpf.OpenPins(p.host, pinsOf(key))
	if err != nil {
		return nil, err
	}
	t, err := openTables(p.host, pins)
	if err != nil {
		return nil, errors.Join(err, pins.Close())
	}
	p.open[key] = t
	return t, nil
}

// deleteSwitch takes everything away; the ports' devices went before.
func (p *Part) deleteSwitch(key string) error {
	p.mu.Lock()
	if t := p.open[key]; t != nil {
		t.close()
		delete(p.open, key)
	}
	p.mu.Unlock()
	pins, err := bpf.OpenPins(p.host, pinsOf(key))
	if err != nil {
		return err
	}
	if err := errors.Join(pins.Unpin(), pins.Close()); err != nil {
		return err
	}
	return kernel.Unbind(p.host.Path(key))
}

// pinsPrefix begins the directories of pins of switches.
const pinsPrefix = "vswitch:"

// pinsOf names a switch's directory of pins, where dots are refused; names
// have no colons.
func pinsOf(key string) string { return pinsPrefix + strings.ReplaceAll(key, ".", ":") }

func keyOf(pins string) (string, bool) {
	rest, ours := strings.CutPrefix(pins, pinsPrefix)
	return strings.ReplaceAll(rest, ":", "."), ours
}
