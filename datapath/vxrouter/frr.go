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

// daemons are those that a router runs, as its plan and state.json have them:
// OSPF as usual, or others, or none.
type daemons struct {
	*plan.OSPF
	FRR *plan.FRR `json:"frr,omitempty"`
}

func daemonsOf(r plan.VxRouter) daemons { return daemons{r.OSPF, r.FRR} }

func (d daemons) none() bool { return d.OSPF == nil && d.FRR == nil }

// unlike are daemons as no plan has them: not all run, or not with what they
// should.
var unlike = daemons{OSPF: &plan.OSPF{}}

// list has them in the order in which they start.
func (d daemons) list() []plan.Daemon {
	switch {
	case d.FRR != nil:
		return d.FRR.Daemons
	case d.OSPF != nil:
		return []plan.Daemon{{Name: "zebra", Config: "ip forwarding\n"}, {Name: "ospfd", Config: ospfd(d.OSPF)}}
	}
	return nil
}

// ospfd is the configuration of usual OSPF. Hello and dead interval are the
// shortest whole seconds that tolerate three lost packets (RFC 2328 section 9.5
// wants both equal on all neighbours).
func ospfd(o *plan.OSPF) string {
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
	return b.String()
}

// setDaemons runs a router's daemons with the wanted configuration. Daemons that
// have it are left alone.
func (p *Part) setDaemons(ctx context.Context, r plan.VxRouter) error {
	want := daemonsOf(r)
	if want.none() {
		p.accept(r.Key())
		return p.removeDaemons(r.Key())
	}
	have, err := p.observeDaemons(r.Key())
	if err != nil || reflect.DeepEqual(have, want) {
		return err
	}
	if err := p.refusal(r.Key(), want); err != nil {
		return err
	}
	if err := canRun(want.list()); err != nil { // before anything is ended
		return err
	}
	if err := p.tryConfig(ctx, r.Key(), want); err != nil { // likewise
		return errors.Join(err, p.putBack(r.Key(), have, want))
	}
	if err := p.removeDaemons(r.Key()); err != nil {
		return err
	}
	if err := p.writeConfigs(r.Key(), want); err != nil {
		return err
	}
	for _, d := range want.list() {
		if err := p.start(ctx, r.Key(), d.Name); err != nil {
			return fmt.Errorf("start %s: %w", d.Name, err)
		}
	}
	if err := p.tellConfig(ctx, r.Key(), want.FRR); err != nil {
		return p.refuse(r.Key(), want, err)
	}
	p.accept(r.Key())
	return p.writeState(r.Key(), want)
}

// putBack leaves what daemons run with as it was before another configuration was
// tried, so that they go on.
func (p *Part) putBack(key string, have, tried daemons) error {
	if have.none() || reflect.DeepEqual(have, unlike) {
		return nil
	}
	for _, d := range tried.list() {
		if err := gone(os.Remove(filepath.Join(p.dir(key), d.Name+".conf"))); err != nil {
			return err
		}
	}
	return p.writeConfigs(key, have)
}

// writeState says what daemons were started for, and told: what Observe reads.
func (p *Part) writeState(key string, want daemons) error {
	state, err := json.Marshal(want)
	if err != nil {
		return err
	}
	return writeFor(0, filepath.Join(p.dir(key), "state.json"), string(state))
}

// canRun says what of daemons is not installed, or is none that routers run.
func canRun(list []plan.Daemon) error {
	if _, err := os.Stat(nsenter); err != nil {
		return fmt.Errorf("routing daemons need nsenter: apt-get install util-linux: %w", err)
	}
	if _, err := os.Stat(kernel.VTYSH); err != nil {
		return fmt.Errorf("routing daemons need vtysh of FRR: apt-get install frr: %w", err)
	}
	for _, d := range list {
		if !slices.Contains(kernel.FRRRouters, d.Name) {
			return fmt.Errorf("%q is no daemon of a router", d.Name)
		}
		if _, err := os.Stat(kernel.FRR(d.Name)); err != nil {
			return fmt.Errorf("needs %s of FRR, which is not installed: apt-get install frr", d.Name)
		}
	}
	return nil
}

// writeConfigs makes the daemons' directory.
func (p *Part) writeConfigs(key string, want daemons) error {
	dir, etc := p.dir(key), p.host.FRRDirs(key)[kernel.FRREtc]
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if err := p.makeOwn(key); err != nil {
		return err
	}
	if err := os.Mkdir(etc, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	owner, err := p.host.Owner(key)
	if err != nil {
		return err
	}
	all := ""
	for _, d := range want.list() {
		if err := os.WriteFile(filepath.Join(dir, d.Name+".conf"), []byte(d.Config), 0o644); err != nil {
			return err
		}
		all += d.Config
	}
	if want.FRR != nil && want.FRR.Config != "" {
		all += want.FRR.Config
		if err := writeFor(owner, filepath.Join(dir, tenantConfig), want.FRR.Config); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"frr.conf": all, "vtysh.conf": ""} { // for vtysh in the node
		if err := writeFor(owner, filepath.Join(etc, name), text); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"passwd": kernel.FRRUser, "group": kernel.FRRGroup} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeFor writes what a tenant wrote, with passwords of neighbours in it, for them
// alone: others who know the network's name get as far as its directory. Nothing that
// root reads is theirs.
func writeFor(owner uint32, path, text string) error {
	const mode = 0o400
	if err := gone(os.Remove(path)); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	if owner == kernel.NoOwner {
		return nil
	}
	return os.Lchown(path, int(owner), -1)
}

// gone is no error of what is not there.
func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// observeDaemons reads what daemons run with; unlike any plan's when they do not
// all run, or not with that; none when there is nothing.
func (p *Part) observeDaemons(key string) (daemons, error) {
	dir := p.dir(key)
	_, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return daemons{}, p.unseenDaemons(key)
	}
	if err != nil {
		return daemons{}, fmt.Errorf("%s %w: %w", dir, kernel.ErrUnseen, err)
	}
	p.noteDaemons(key, true)
	if !p.hasOwn(key) { // as versions before 0.1 made it, or unmounted
		return unlike, p.host.Look(ownKind)
	}
	var have daemons
	state, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil || json.Unmarshal(state, &have) != nil || have.none() {
		return unlike, nil
	}
	for _, d := range have.list() {
		text, err := os.ReadFile(filepath.Join(dir, d.Name+".conf"))
		if err != nil || string(text) != d.Config {
			return unlike, nil
		}
	}
	for _, d := range have.list() {
		if pids, err := p.running(key, d.Name); err != nil || len(pids) == 0 {
			return unlike, err
		}
	}
	return have, nil
}

// unseenDaemons says that daemons run whose directory is not there: then it is
// somewhere else. Of a node that had none it is asked once.
func (p *Part) unseenDaemons(key string) error {
	if had, known := p.noteDaemons(key, false); known && !had {
		return nil
	}
	for _, d := range kernel.FRRDaemons[:1] { // without zebra the others do nothing
		pids, err := p.running(key, d)
		if err == nil && len(pids) > 0 {
			err = fmt.Errorf("%s %w: it is missing, and %s runs (process %d)", p.dir(key), kernel.ErrUnseen, d, pids[0])
		}
		if err != nil {
			p.noteDaemons(key, true)
			return err
		}
	}
	return nil
}

// noteDaemons keeps whether a node has daemons, and says what was noted before.
func (p *Part) noteDaemons(key string, has bool) (had, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had, known = p.daemons[key]
	p.daemons[key] = has
	return had, known
}

// removeDaemons stops the daemons, the last started first, and removes their files.
func (p *Part) removeDaemons(key string) error {
	p.mu.Lock()
	delete(p.compared, key)
	p.mu.Unlock()
	dir := p.dir(key)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, d := range slices.Backward(p.configured(key)) {
		if err := p.stop(key, d); err != nil {
			return err
		}
	}
	p.noteDaemons(key, false)
	if err := kernel.Unbind(p.ownDir(key)); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// configured lists the daemons that a router was given, in the order in which
// they start.
func (p *Part) configured(key string) (names []string) {
	for _, d := range kernel.FRRRouters {
		if _, err := os.Stat(filepath.Join(p.dir(key), d+".conf")); !errors.Is(err, os.ErrNotExist) {
			names = append(names, d)
		}
	}
	return names
}
