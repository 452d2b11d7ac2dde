// Package openflow runs leased OpenFlow switches: each is one process (sublet
// openflow run, datapath/ofswitch) between two namespaces of the provider's.
//
//	l<i>b of a fabric ==veth== eth0 --+                 +-- eth0 ==veth== l<k>a of the control link
//	l<j>a of a fabric ==veth== eth1 --[packet sockets: process: connections]
//	      namespace of the ports                           namespace of the ControlNode
//
// Nothing else joins the two, unless control is in band: then a link of the fabric
// joins device local of the ports' namespace with the ControlNode, by which control
// alone passes. So a controller reaches the ports but by OpenFlow,
// and a port reaches no controller but by a packet-in. The process outlives the
// agent: one that starts finds it by its control group.
package openflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// Part does switches of type openflow. Do may be called concurrently for
// different switches; Observe waits until no Do is running.
type Part struct {
	// Core is where a switch's process is kept, and what it uses; false: it is on no core
	// of its own. nil: nobody keeps them.
	Core func(key string) (core int, used vnet.CPU, ok bool)

	Changed func() // is told when Problems may be others

	host  *kernel.Host
	busy  sync.RWMutex // Do: read, Observe: write
	slots chan struct{}
	life  context.Context
	stop  context.CancelFunc

	mu     sync.Mutex
	coming map[string]*coming
	fates  map[string]fate
	mended []plan.Step
	heard  map[string]time.Time // when a switch said something last
}

// New makes the part for one host.
func New(host *kernel.Host) *Part {
	p := &Part{host: host, slots: make(chan struct{}, abreast), coming: make(map[string]*coming), fates: make(map[string]fate), heard: make(map[string]time.Time)}
	p.life, p.stop = context.WithCancel(context.Background())
	return p
}

// Kinds is openflow.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindOpenFlow} }

// Close lets go. The processes go on.
func (p *Part) Close() { p.stop() }

// Do makes one change.
func (p *Part) Do(_ context.Context, step plan.Step) (err error) {
	p.busy.RLock()
	defer p.busy.RUnlock()
	s, ok := step.Item.(plan.Switch)
	switch {
	case !ok:
		return fmt.Errorf("openflow does not do %s", step.Item.Kind())
	case step.Op == plan.Delete:
		err = p.remove(s.Key())
	case s.OpenFlow == nil:
		err = errors.New("the plan says nothing of its tables")
	default:
		err = p.set(step, s)
	}
	if err != nil {
		return fmt.Errorf("%s switch %s: %w", step.Op, step.Item.Key(), err)
	}
	return nil
}

// set makes the namespace of the ports, and has the process come beside, unless it runs
// as it is to; limits are changed in place.
func (p *Part) set(step plan.Step, s plan.Switch) error {
	if err := p.host.MakeSilent(s.Key()); err != nil {
		return err
	}
	again := same(p.written(s.Key()).Switch, s)
	if p.onItsWay(s.Key()) != nil || !p.runsAs(s) || p.resliced(s) {
		p.begin(s, again)
		return nil
	}
	if again {
		p.mu.Lock()
		p.mended = append(p.mended, step)
		p.mu.Unlock()
	}
	return errors.Join(p.limit(s), p.keep(s))
}

// keep writes down what runs.
func (p *Part) keep(s plan.Switch) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return p.write(s.Key(), "plan.json", text)
}

// forget removes what a process has kept for the next one (sublet openflow run --keep).
func (p *Part) forget(key string) error {
	for _, name := range []string{"state", "counts", "flows", "slices", "numbers", "moved"} {
		if err := os.Remove(p.file(key, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// remove takes everything away; the ports' devices went before.
func (p *Part) remove(key string) error {
	p.end(key)
	p.mu.Lock()
	delete(p.fates, key)
	delete(p.heard, key)
	p.mu.Unlock()
	if err := p.group(key).Remove(); err != nil {
		return err
	}
	if err := os.RemoveAll(p.dir(key)); err != nil {
		return err
	}
	return kernel.Unbind(p.host.Path(key))
}

// kind is of the host's directory that has a directory of each switch.
const kind = "openflow"

func (p *Part) dir(key string) string { return filepath.Join(p.host.Dir(kind), key) }

func (p *Part) file(key, name string) string { return filepath.Join(p.dir(key), name) }

// group is a switch's control group; its name has one part more than a node's.
func (p *Part) group(key string) kernel.Group { return p.host.Group(key) }

// write replaces a file at once: one who dies half-way leaves the old one.
func (p *Part) write(key, name string, text []byte) error {
	fresh := p.file(key, name+".new")
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, p.file(key, name))
}

// written is the switch whose process was started last; without OpenFlow if that
// is not known.
func (p *Part) written(key string) process {
	id, name, _ := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow)
	s := plan.Switch{Lease: id, Switch: name, Type: vnet.SwitchOpenFlow}
	var read plan.Switch
	text, err := os.ReadFile(p.file(key, "plan.json"))
	if err == nil && json.Unmarshal(text, &read) == nil && read.Key() == key {
		s = read
	}
	return process{s}
}

// Observe reads switches back. One that is on its way is there: Problems tells of it. One
// whose process does not run as it was started has no tables: no plan has that.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	if err := p.host.LookGroups(); err != nil {
		return err
	}
	keys, err := p.keys()
	if err != nil {
		return fmt.Errorf("list OpenFlow switches: %w", err)
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c := p.onItsWay(key); c != nil && inode(p.host.Path(key)) != 0 {
			host.Add(c.wish)
			continue
		}
		s := p.written(key).Switch
		if s.OpenFlow == nil || !p.running(key) || !p.limited(s) {
			s.OpenFlow = &plan.OpenFlow{}
		}
		host.Add(s)
	}
	return nil
}

// Running are the switches that have a process here, with their leases.
func (p *Part) Running() (map[string]vnet.LeaseID, error) {
	keys, err := p.host.Names(kind)
	if err != nil {
		return nil, err
	}
	running := make(map[string]vnet.LeaseID)
	for _, key := range keys {
		if lease, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow); ok {
			running[key] = lease
		}
	}
	return running, nil
}

// keys lists every switch of which there is anything.
func (p *Part) keys() ([]string, error) {
	keys, err := p.host.Names("netns")
	if err != nil {
		return nil, err
	}
	dirs, err := p.host.Names(kind)
	if err != nil {
		return nil, err
	}
	keys = append(keys, dirs...)
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool {
		_, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow)
		return !ok
	}), nil
}

// watchEvery is how often it is looked for switches that are new or gone.
const watchEvery = 250 * time.Millisecond

// Loop puts a token into events, which has room for one, whenever a process has
// ended, until ctx ends. A process that stands still it ends.
func (p *Part) Loop(ctx context.Context, events chan<- struct{}) {
	watched := make(map[string]context.CancelFunc)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if keys, err := p.host.Names(kind); err == nil {
			p.watch(ctx, watched, keys, events)
			p.listen(keys)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for _, end := range watched {
		end()
	}
}

// watch watches the processes of some switches, and of no others.
func (p *Part) watch(ctx context.Context, watched map[string]context.CancelFunc, keys []string, events chan<- struct{}) {
	for _, key := range keys {
		if watched[key] == nil {
			one, end := context.WithCancel(ctx)
			watched[key] = end
			go p.helper(key).Watch(one, events)
		}
	}
	for key, end := range watched {
		if !slices.Contains(keys, key) {
			end()
			delete(watched, key)
		}
	}
}
