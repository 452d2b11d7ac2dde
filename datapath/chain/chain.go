// Package chain makes service chains of plans: what a host does for those of a
// lease is one plane of datapath/nsh, whose packets to other hosts have the
// classes of the links that chains booked.
package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
	"sublet/datapath/nsh"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Part does chains. Do may be called concurrently for different items; Observe
// waits until no Do is running.
type Part struct {
	// Class is that of the uplink which a link's tunnel has by one of its ends.
	Class func(lease vnet.LeaseID, index, end int) (uint16, error)

	// Short says why a chain of a lease has less than its rate for want of processor
	// time; "": it has not.
	Short func(lease vnet.LeaseID, chain string) string

	// Core is where a program's process is kept, and what it uses; false: it is on no
	// core of its own. nil: nobody keeps them.
	Core func(namespace string) (core int, used vnet.CPU, ok bool)

	// Measured is what the host was found to do with packets; nil: nobody asks.
	Measured func() vnet.Measurement

	// Changed is called when Problems are others; nil: nobody asks. Log has what became
	// of functions.
	Changed func()
	Log     *slog.Logger

	host   *kernel.Host
	plane  *nsh.Part
	busy   sync.RWMutex // Do: read, Observe: write
	held   held
	health health

	deaths deaths
	prober prober // of the Loop alone
}

// New makes the part for one host.
func New(host *kernel.Host) *Part {
	return &Part{host: host, plane: nsh.New(host)}
}

// Kinds is chains.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindChains} }

// Close lets go. Packets go on.
func (p *Part) Close() { p.plane.Close() }

// Programs are those that stand on ports of links.
func (p *Part) Programs() ([]ebpf.ProgramID, error) { return p.plane.Programs() }

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	c, ok := step.Item.(plan.Chains)
	if !ok {
		return fmt.Errorf("chain does not do %s", step.Item.Kind())
	}
	do := p.set
	if step.Op == plan.Delete {
		do = p.remove
	}
	if err := do(c); err != nil {
		return fmt.Errorf("%s chains of %s: %w", step.Op, c.Key(), err)
	}
	return nil
}

// kind is of the host's directory that has a file of each item.
const kind = "chain"

func (p *Part) file(key string) string { return filepath.Join(p.host.Dir(kind), key) }

// set writes the item down first, so that whatever is made is found again.
func (p *Part) set(c plan.Chains) error {
	plane, err := p.planeOf(c)
	if err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := kernel.MkdirAll(p.host.Dir(kind), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.file(c.Key())+unfinished, text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(p.file(c.Key())+unfinished, p.file(c.Key())); err != nil {
		return err
	}
	if err := p.plane.Set(plane); err != nil {
		return err
	}
	p.health.set(plane)
	p.held.set(c)
	return nil
}

const unfinished = ".new"

func (p *Part) remove(c plan.Chains) error {
	p.held.drop(c.Key())
	if err := p.plane.Delete(c.Key()); err != nil {
		return err
	}
	for _, name := range []string{p.file(c.Key()) + unfinished, p.file(c.Key())} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	p.host.Tidy()
	return nil
}

// written is the item that was set last; false: that is not known.
func (p *Part) written(key string) (c plan.Chains, ok bool) {
	text, err := os.ReadFile(p.file(key))
	return c, err == nil && json.Unmarshal(text, &c) == nil && c.Key() == key
}

// Observe reads chains back. Those of which something is missing have no hops: no
// plan has that.
func (p *Part) Observe(_ context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	planes, err := p.plane.Planes()
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, plane := range planes {
		seen[plane.Fabric] = true
		p.observe(plane, host)
	}
	names, err := p.host.Names(kind)
	if err != nil {
		return fmt.Errorf("list chains: %w", err)
	}
	for _, name := range names { // written, and not made
		if lease, ok := plan.ParseFabric(name); ok && !seen[name] && filepath.Ext(name) != unfinished {
			host.Add(plan.Chains{Lease: lease})
		}
	}
	return nil
}

func (p *Part) observe(plane nsh.Plane, host *plan.Host) {
	lease, ok := plan.ParseFabric(plane.Fabric)
	if !ok {
		return
	}
	c, ok := p.written(plane.Fabric)
	if !ok {
		host.Add(plan.Chains{Lease: lease})
		return
	}
	p.health.adopt(plane)
	want, err := p.planeOf(c)
	if err != nil || !same(want, plane) {
		c = plan.Chains{Lease: lease}
	}
	host.Add(c)
}

// same compares what is read back with what was to be set: as it is written, since
// none and empty lists are one.
func same(a, b nsh.Plane) bool {
	x, err := json.Marshal(a)
	y, too := json.Marshal(b)
	return err == nil && too == nil && reflect.DeepEqual(x, y)
}

// Samples says what each hop of each chain counted.
func (p *Part) Samples(_ context.Context, of report.Scope) ([]report.Sample, error) {
	names, err := p.host.Names(kind)
	if err != nil {
		return nil, err
	}
	var list []report.Sample
	var failed []error
	for _, name := range names {
		lease, ok := plan.ParseFabric(name)
		c, known := p.written(name)
		if !ok || !known || !of.Holds(lease) {
			continue
		}
		counted, err := p.plane.Report(name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		list = append(list, p.samples(c, counted)...)
	}
	return list, errors.Join(failed...)
}

// samples of the hops of an item.
func (p *Part) samples(c plan.Chains, counted nsh.Report) (list []report.Sample) {
	for i, h := range c.Hops {
		if i >= len(counted.Hops) {
			break
		}
		if h.Chain == "" { // of what asks nodes whether they live
			continue
		}
		n := counted.Hops[i]
		s := report.Sample{
			Kind: plan.KindChains, Key: fmt.Sprintf("%s/%s/%d/%d", c.Key(), h.Chain, h.Path, h.Index), Lease: c.Lease,
			Labels: map[string]string{report.LabelChain: h.Chain, report.LabelHop: h.At(), report.LabelIndex: strconv.Itoa(int(h.Index))},
		}
		if h.Back {
			s.Labels[report.LabelBack] = "true"
		}
		s.Count(report.Passed, report.Packets, n.Packets)
		s.Count(report.Passed, report.Bytes, n.Bytes)
		s.CountBy(report.Dropped, n.Drops)
		if h.Function != "" {
			s.Count(report.Timed, report.Packets, n.Timed)
			s.Count(report.Spent, report.Nanoseconds, n.Spent)
		}
		if h.OnFailure != "" && slices.Contains(counted.Dead, h.Function) || h.Backend != "" && p.health.down(c.Key(), h.Path) {
			s.State = report.Down
		}
		if f, ok := c.Function(h.Function); ok && f.Auto != nil {
			s.Gauge(report.Given, report.MilliCores, uint64(p.host.Group(f.Auto.Node).CPU()))
			s.Why = p.Short(c.Lease, h.Chain)
		}
		if f, ok := c.Function(h.Function); ok && f.Type == vnet.FunctionProgram && p.Core != nil {
			if core, used, ok := p.Core(plan.Namespace(c.Lease, f.Name)); ok {
				s.OnCore(core, used)
			}
		}
		list = append(list, s)
	}
	s := report.Sample{Kind: plan.KindChains, Key: c.Key(), Lease: c.Lease}
	s.CountBy(report.Dropped, counted.Drops)
	if list = append(list, s); p.Measured != nil {
		m := p.Measured()
		list = append(list, report.KernelSample(plan.KindChains, c.Key(), c.Lease, kernelTime(c, counted, m), m))
	}
	return list
}

// kernelTime is what the host spent on packets of chains: where they begin and where
// they end as on a link, and on one into each program and one out of it.
func kernelTime(c plan.Chains, counted nsh.Report, m vnet.Measurement) (spent time.Duration) {
	for i, h := range c.Hops {
		if i >= len(counted.Hops) {
			break
		}
		n := counted.Hops[i]
		if f, ok := c.Function(h.Function); ok && f.Type == vnet.FunctionProgram {
			spent += m.KernelTime(true, n.Packets+n.Returned, 0)
		} else if h.HoldsRate() || h.Egress != "" {
			spent += m.KernelTime(true, n.Packets, n.Bytes)
		}
	}
	return spent
}
