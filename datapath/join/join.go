// Package join lets machines that are no hosts of the substrate become nodes: a
// tunnel of WireGuard ends in the node's namespace, which is the provider's.
//
//	machine ==UDP== [port of the host]--process--[wg0 routes eth0] node's namespace ==link== fabric
//
// The socket is opened in the host's namespace and the device in the node's; the
// process between them (sublet __join) has both as open files and no rights, and
// outlives the agent. The node's address is the machine's: what comes for it is
// led into the tunnel, and of what leaves the tunnel only what comes from it is
// taken. Keys are in a file below the agent's data, in no plan and no argument.
package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Part does joins. Do may be called concurrently for different items; Observe
// waits until no Do is running.
type Part struct {
	host *kernel.Host
	data string       // directory of keys
	busy sync.RWMutex // Do: read, Observe: write
	keys sync.Mutex   // files of keys
}

// New makes the part for one host, whose keys are below a directory.
func New(host *kernel.Host, data string) *Part {
	return &Part{host: host, data: filepath.Join(data, "joins", host.Host)}
}

// Kinds is join.
func (p *Part) Kinds() []plan.Kind { return []plan.Kind{plan.KindJoin} }

// Close lets go. The processes go on.
func (p *Part) Close() {}

// Do makes one change.
func (p *Part) Do(ctx context.Context, step plan.Step) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	j, ok := step.Item.(plan.Join)
	if !ok {
		return fmt.Errorf("join does not do %s", step.Item.Kind())
	}
	do := func() error { return p.set(ctx, j) }
	if step.Op == plan.Delete {
		do = func() error { return p.remove(j) }
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s %s: %w", step.Op, j.Key(), err)
	}
	return nil
}

// kind is of the host's directory that has a directory of each join.
const kind = "join"

func (p *Part) dir(key string) string { return filepath.Join(p.host.Dir(kind), key) }

func (p *Part) file(key, name string) string { return filepath.Join(p.dir(key), name) }

// group is the control group of a process; its name has one part more than a node's.
func (p *Part) group(key string) kernel.Group { return p.host.Group(key + ".join") }

// set makes the process unless it runs as it is to, and the way between link and
// tunnel. Without a key of the machine nothing passes.
func (p *Part) set(ctx context.Context, j plan.Join) error {
	if err := os.MkdirAll(p.dir(j.Key()), 0o700); err != nil {
		return err
	}
	ns, err := p.host.Open(j.Key())
	if err != nil {
		return err
	}
	defer ns.Close()
	was, _ := p.written(j.Key())
	if !p.running(j.Key(), ns) || was.At != j.At || was.Serial != j.Serial || was.Address != j.Address {
		if err := p.group(j.Key()).Remove(); err != nil {
			return err
		}
		if err := p.begin(ctx, ns, j); err != nil {
			return err
		}
	}
	if err := makeWay(ns, j); err != nil {
		return err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return replace(p.file(j.Key(), "plan.json"), text)
}

// remove takes everything away, the keys too.
func (p *Part) remove(j plan.Join) error {
	err := p.group(j.Key()).Remove()
	if ns, gone := p.host.Open(j.Key()); gone == nil {
		err = errors.Join(err, clearWay(ns))
		ns.Close()
	}
	return errors.Join(err, p.forget(j.Key()), os.RemoveAll(p.dir(j.Key())))
}

// written is the join that was set last; false: that is not known.
func (p *Part) written(key string) (j plan.Join, ok bool) {
	text, err := os.ReadFile(p.file(key, "plan.json"))
	return j, err == nil && json.Unmarshal(text, &j) == nil && j.Key() == key
}

// running says whether the process lives, and its device is in the namespace.
func (p *Part) running(key string, ns *os.File) bool {
	pids, err := p.group(key).Processes()
	if err != nil || len(pids) != 1 {
		return false
	}
	c, err := kernel.DialIn(ns)
	if err != nil {
		return false
	}
	defer c.Close()
	l, err := c.LinkByName(device)
	return err == nil && l.Kind == "tun"
}

// Observe reads joins back. One of which only parts are there is at no port: no
// plan has that.
func (p *Part) Observe(ctx context.Context, host *plan.Host) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	if err := p.host.LookGroups(); err != nil {
		return err
	}
	keys, err := p.names()
	if err != nil {
		return fmt.Errorf("list joins: %w", err)
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		j, err := p.observe(key)
		if err != nil {
			host.Unseen(fmt.Errorf("observe join %s: %w", key, err), j.Lease, plan.KindJoin)
			continue
		}
		host.Add(j)
	}
	return nil
}

func (p *Part) observe(key string) (plan.Join, error) {
	id, node, _ := plan.ParseNamespace(key)
	j := plan.Join{Lease: id, Node: node}
	was, known := p.written(key)
	ns, err := p.host.Open(key)
	if errors.Is(err, os.ErrNotExist) {
		return j, p.host.Unseen(key)
	}
	if err != nil {
		return j, err
	}
	defer ns.Close()
	if !known || !p.running(key, ns) {
		return j, nil
	}
	right, err := isWay(ns, was)
	if err == nil && right {
		j = was
	}
	return j, err
}

// names lists every join of which there is anything.
func (p *Part) names() ([]string, error) {
	names, err := p.host.Names(kind)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(p.data)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(key string) bool {
		_, _, ok := plan.ParseNamespace(key)
		return !ok
	}), nil
}

// watchEvery is how often it is looked whether the processes live.
const watchEvery = 250 * time.Millisecond

// Loop puts a token into events, which has room for one, whenever a process has
// ended, until ctx ends.
func (p *Part) Loop(ctx context.Context, events chan<- struct{}) {
	alive := make(map[string]bool)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		names, err := p.host.Names(kind)
		if err != nil {
			continue
		}
		now := make(map[string]bool, len(names))
		for _, key := range names {
			pids, err := p.group(key).Processes()
			now[key] = err == nil && len(pids) > 0
			if alive[key] && !now[key] {
				select {
				case events <- struct{}{}:
				default:
				}
			}
		}
		alive = now
	}
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// replace writes a file at once: one who dies half-way leaves the old one.
func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
