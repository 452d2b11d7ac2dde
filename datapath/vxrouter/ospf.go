package vxrouter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// dir has what the daemons read; only root writes there.
func (p *Part) dir(key string) string { return filepath.Join(p.host.Dir("frr"), key) }

// ownDir has what the daemons make. It belongs to the tenant, who may put
// anything there: nothing of it is believed, and root opens no file in it by
// following a link.
func (p *Part) ownDir(key string) string { return filepath.Join(p.dir(key), "own") }

// configs are the daemons' configuration files. Hello and dead interval are
// the shortest whole seconds that tolerate three lost packets (RFC 2328
// section 9.5 wants both equal on all neighbours).
func configs(o *plan.OSPF) map[string]string {
	var b strings.Builder
	for _, name := range o.Interfaces {
		fmt.Fprintf(&b, "interface %s\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n ip ospf retransmit-interval 1\n ip ospf area 0\n", name)
	}
	for _, name := range o.Stubs {
		fmt.Fprintf(&b, "interface %s\n ip ospf network point-to-point\n ip ospf passive\n ip ospf area 0\n", name)
	}
	// Interfaces with a peer address count as unnumbered, which announces
	// nothing: neighbours' addresses are connected routes, told as such.
	fmt.Fprintf(&b, "router ospf\n ospf router-id %s\n redistribute connected metric-type 1\n timers throttle spf 10 50 1000\n timers throttle lsa all 100\n timers lsa min-arrival 50\n", o.RouterID)
	return map[string]string{"zebra": "ip forwarding\n", "ospfd": b.String()}
}

// setOSPF runs the daemons with the wanted configuration. Daemons that have
// it are left alone.
func (p *Part) setOSPF(ctx context.Context, r plan.VxRouter) error {
	if r.OSPF == nil {
		return p.removeOSPF(r.Key())
	}
	if have, err := p.observeOSPF(r.Key()); err != nil || reflect.DeepEqual(have, r.OSPF) {
		return err
	}
	if _, err := os.Stat(nsenter); err != nil { // before anything is ended
		return fmt.Errorf("OSPF needs nsenter: apt-get install util-linux: %w", err)
	}
	if d := kernel.MissingFRR(); d != "" {
		return fmt.Errorf("OSPF needs %s of FRR, which is not installed: apt-get install frr", d)
	}
	if err := p.removeOSPF(r.Key()); err != nil {
		return err
	}
	if err := p.writeConfigs(r.Key(), r.OSPF); err != nil {
		return err
	}
	for _, d := range kernel.FRRDaemons {
		if err := p.start(ctx, r.Key(), d); err != nil {
			return fmt.Errorf("start %s: %w", d, err)
		}
	}
	return nil
}

// writeConfigs makes the daemons' directory; state.json, which tells Observe
// what they were started for, comes last.
func (p *Part) writeConfigs(key string, o *plan.OSPF) error {
	dir, own := p.dir(key), p.ownDir(key)
	// Tenants pass through on their way to their own, and see no others'.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	files := configs(o)
	for _, name := range kernel.FRRDaemons { // in one order, for the tests that count calls
		text := files[name]
		if err := os.WriteFile(filepath.Join(dir, name+".conf"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "group"), []byte(kernel.FRRGroup), 0o644); err != nil {
		return err
	}
	owner, err := p.host.Owner(key)
	if err != nil {
		return err
	}
	if owner != kernel.NoOwner {
		if err := os.Lchown(own, int(owner), -1); err != nil {
			return err
		}
	}
	state, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "state.json"), state, 0o644)
}

// observeOSPF reads what the daemons run with; an empty one when they do not
// all run, or not with that; nil when there is nothing.
func (p *Part) observeOSPF(key string) (*plan.OSPF, error) {
	dir := p.dir(key)
	_, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, p.unseenOSPF(key)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", dir, kernel.ErrUnseen, err)
	}
	p.noteOSPF(key, true)
	o := &plan.OSPF{}
	state, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil || json.Unmarshal(state, o) != nil {
		return &plan.OSPF{}, nil
	}
	for name, want := range configs(o) {
		have, err := os.ReadFile(filepath.Join(dir, name+".conf"))
		if err != nil || string(have) != want {
			return &plan.OSPF{}, nil
		}
	}
	for _, d := range kernel.FRRDaemons {
		if pids, err := p.running(key, d); err != nil || len(pids) == 0 {
			return &plan.OSPF{}, err
		}
	}
	return o, nil
}

// unseenOSPF says that daemons run whose directory is not there: then it is
// somewhere else. Of a node that had none it is asked once.
func (p *Part) unseenOSPF(key string) error {
	if had, known := p.noteOSPF(key, false); known && !had {
		return nil
	}
	for _, d := range kernel.FRRDaemons {
		pids, err := p.running(key, d)
		if err == nil && len(pids) > 0 {
			err = fmt.Errorf("%s %w: it is missing, and %s runs (process %d)", p.dir(key), kernel.ErrUnseen, d, pids[0])
		}
		if err != nil {
			p.noteOSPF(key, true)
			return err
		}
	}
	return nil
}

// noteOSPF keeps whether a node has daemons, and says what was noted before.
func (p *Part) noteOSPF(key string, has bool) (had, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had, known = p.ospf[key]
	p.ospf[key] = has
	return had, known
}

// removeOSPF stops the daemons, the last started first, and removes their files.
func (p *Part) removeOSPF(key string) error {
	p.mu.Lock()
	delete(p.compared, key)
	p.mu.Unlock()
	dir := p.dir(key)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, d := range slices.Backward(kernel.FRRDaemons) {
		if err := p.stop(key, d); err != nil {
			return err
		}
	}
	p.noteOSPF(key, false)
	return os.RemoveAll(dir)
}
