// Package nsh is the data path of service chains: traffic that a classifier takes
// is led through functions in order, on one host or several, by the Network
// Service Header (RFC 8300), and ends at an egress.
//
//	node a =veth=> [nsh_classify] -> firewall -> node (a program between two interfaces)
//	                                                 |
//	                         [nsh_return] <-=========+
//	                              |-> remote: all headers, =chain=> [nsh_uplink] => interface
//	interface => [nsh_rx] =chain=> [nsh_enter] -> NAT -> egress =veth=> node b
//
// A hop is a row by path and index; each kind of hop is a program, which calls the
// next one's (bpf_tail_call). Programs, rows and state are pinned: while no agent
// runs, packets go on. A file in $RUN/nsh/HOST says what was set for a lease.
package nsh

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"sublet/datapath/kernel"
)

// Part does the planes of one host, one at a time.
type Part struct {
	host    *kernel.Host
	mu      sync.Mutex
	loaded  *tables
	limited map[hopOf]Counts // of hops with queues, as reported last
}

// New makes the part for one host.
func New(host *kernel.Host) *Part { return &Part{host: host, limited: make(map[hopOf]Counts)} }

// Close lets go of what is open. What is pinned stays and forwards.
func (p *Part) Close() {
	if p.loaded != nil {
		p.loaded.all.Close()
		p.loaded = nil
	}
}

// Set makes a lease's plane what it should be. What a live change adds is there
// before packets are led to it, and what it takes away goes after.
func (p *Part) Set(plane Plane) error {
	if err := Check(plane); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.set(plane); err != nil {
		return fmt.Errorf("set the service plane %s: %w", plane.Fabric, err)
	}
	return nil
}

func (p *Part) set(plane Plane) error {
	all, err := p.records()
	if err != nil {
		return err
	}
	r, err := recordOf(all, plane)
	if err != nil {
		return err
	}
	t, err := p.tables()
	if err != nil {
		return err
	}
	s, err := p.open(plane)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.devices(plane); err != nil { // named before anything is written
		return err
	}
	if err := p.write(r); err != nil {
		return err
	}
	if err := errors.Join(s.pair(plane), s.cut(plane), s.queues(r)); err != nil {
		return err
	}
	rows, err := t.rowsOf(r, s)
	if err != nil {
		return err
	}
	was, err := t.shared()
	if err != nil {
		return err
	}
	if err := t.apply(r, rows, s, was); err != nil {
		return err
	}
	return errors.Join(t.sweep(all, r, rows, was), s.sweepQueues(r))
}

// Delete takes a lease's plane away, present or not, and with the last one all that
// the part has on the host.
func (p *Part) Delete(fabric string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.delete(fabric); err != nil {
		return fmt.Errorf("delete the service plane %s: %w", fabric, err)
	}
	return nil
}

func (p *Part) delete(fabric string) error {
	all, err := p.records()
	if err != nil {
		return err
	}
	r, ok := all[fabric]
	if !ok {
		return nil
	}
	delete(all, fabric)
	if len(all) == 0 {
		err = p.unload()
	} else {
		err = p.empty(all, r)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(p.deletePair(fabric), p.deleteQueues(fabric)); err != nil {
		return err
	}
	maps.DeleteFunc(p.limited, func(at hopOf, _ Counts) bool { return at.fabric == fabric })
	return p.forget(fabric)
}

// empty takes a plane's rows away, classifiers first.
func (p *Part) empty(all map[string]record, r record) error {
	t, err := p.tables()
	if err != nil {
		return err
	}
	r.Plane = Plane{Fabric: r.Plane.Fabric}
	return t.sweep(all, r, rows{}, nil)
}

// Report is what a plane counted.
func (p *Part) Report(fabric string) (Report, error) {
	reports, err := p.Reports(fabric)
	if err != nil {
		return Report{}, err
	}
	return reports[0], nil
}

// Reports is what planes counted.
func (p *Part) Reports(fabrics ...string) ([]Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := p.records()
	if err != nil {
		return nil, err
	}
	t, err := p.tables()
	if err != nil {
		return nil, err
	}
	var list []Report
	for _, fabric := range fabrics {
		r, ok := all[fabric]
		if !ok {
			return nil, fmt.Errorf("there is no service plane %s", fabric)
		}
		one, err := t.report(r)
		if err == nil {
			err = p.readQueues(r, one)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}
