// Package vxswitch runs a host's hosting switch: one process (sublet vxswitch
// run) that carries the frames of all virtual switches of kind vxswitch on this
// host, of all tenants.
//
//	l<i>b of a fabric ==veth== eth0 --[packet socket: engine: packet socket]-- eth1 ==veth== l<j>a
//
// Each virtual switch has a namespace of the provider's for its ports, the far
// ends of VxLinks. The process outlives the agent: an agent that starts
// finds it by its socket, and starts it again when it is gone.
package vxswitch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part does switches of type vxswitch and their ports. Do and Observe take turns:
// all items are in one process.
type Part struct {
	host *kernel.Host
	mu   sync.Mutex
}

// New makes the part for one host.
func New(host *kernel.Host) *Part { return &Part{host: host} }

// Kinds are vxswitch and vxswitchport.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindVxSwitch, plan.KindVxSwitchPort} }

var errNoEngine = errors.New("the plan says nothing of its queues")

// Close lets go. The process goes on.
func (p *Part) Close() {}

// Do makes one change.
func (p *Part) Do(ctx context.Context, step plan.Step) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch item := step.Item.(type) {
	case plan.Switch:
		if step.Op == plan.Delete {
			err = p.deleteSwitch(ctx, item)
		} else {
			err = p.setSwitch(ctx, item)
		}
	case plan.SwitchPort:
		err = p.setPort(ctx, item, step.Op == plan.Delete)
	default:
		return fmt.Errorf("vxswitch does not do %s", step.Item.Kind())
	}
	if err != nil {
		return fmt.Errorf("%s switch %s: %w", step.Op, step.Item.Key(), err)
	}
	return nil
}

// setSwitch makes the namespace, which links need, and hosts the switch.
func (p *Part) setSwitch(ctx context.Context, s plan.Switch) error {
	if s.Engine == nil {
		return errNoEngine
	}
	if err := p.host.MakeSilent(s.Key()); err != nil {
		return err
	}
	return p.change(ctx, func(st *state) { st.setSwitch(s, false) })
}

func (p *Part) setPort(ctx context.Context, port plan.SwitchPort, gone bool) error {
	if port.Engine == nil && !gone {
		return errNoEngine
	}
	return p.change(ctx, func(st *state) { st.setPort(port, gone) })
}

func (p *Part) deleteSwitch(ctx context.Context, s plan.Switch) error {
	if err := p.change(ctx, func(st *state) { st.setSwitch(s, true) }); err != nil {
		return err
	}
	return kernel.Unbind(p.host.Path(s.Key()))
}

// change changes what the process is to be, writes it down, and makes it so. A
// change that the process refuses is not written down.
func (p *Part) change(ctx context.Context, f func(*state)) error {
	before, err := p.load()
	if err != nil {
		return err
	}
	after := before.clone()
	f(after)
	if err := p.save(after); err != nil {
		return err
	}
	if err := p.enforce(ctx, after); err != nil {
		return errors.Join(err, p.save(before))
	}
	return nil
}
