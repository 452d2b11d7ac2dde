package iplbd

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// OSPF follows the link-state database of an ospfd of FRR.
type OSPF struct {
	Dir    string // of its vty socket, as vtysh --vty_socket takes it
	Choice Choice
	Log    *slog.Logger
}

// Bounds of polling. The list of instances is asked for every poll, or so often
// that it takes a twentieth of the time, going by the quickest of recent
// answers, but never half of it: the others waited for a processor, as most do
// just when the fabric changes. Of LSAs that changed, up to a few are read one by one.
const (
	poll      = 50 * time.Millisecond
	share     = 20
	recent    = 8
	fewLSAs   = 8
	afterFail = time.Second
)

// Run reads the database, and tells want all paths whenever they change: at
// once without those that lost a link, then with what replaces them. It goes on
// when ospfd restarts; while it is away, paths stay.
func (o OSPF) Run(ctx context.Context, want func([]plan.Spread)) {
	r := &reader{dir: o.Dir, daemon: "ospfd", choice: o.Choice, log: o.Log}
	r.ask = r.read
	r.run(ctx, want)
}

func (r *reader) run(ctx context.Context, want func([]plan.Spread)) {
	r.want = want
	for ctx.Err() == nil {
		err := r.session(ctx)
		if ctx.Err() == nil {
			r.log.Warn("link state not read", "err", err)
			sleep(ctx, afterFail)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// reader is what is known of the database.
type reader struct {
	dir, daemon string
	choice      Choice
	log         *slog.Logger
	ask         func(*kernel.VTY) error // for what changed, and computes if something did
	want        func([]plan.Spread)

	instances map[netip.Addr]header
	db        Database
	computed  Computed
}

// session reads over one connection until it fails.
func (r *reader) session(ctx context.Context) error {
	v, err := kernel.DialVTY(r.dir, r.daemon, kernel.VTYLimit{Time: patience, Bytes: maxAnswer})
	if err != nil {
		return err
	}
	defer v.Close()
	var took [recent]time.Duration
	for i := 0; ctx.Err() == nil; i++ {
		began := time.Now()
		if err := r.ask(v); err != nil {
			return err
		}
		last := time.Since(began)
		took[i%recent] = last
		sleep(ctx, max(poll, last, share*slices.Min(took[:min(i+1, recent)])))
	}
	return nil
}

// read asks for what changed, and computes if something did.
func (r *reader) read(v *kernel.VTY) error {
	text, err := v.Ask("show ip ospf database json")
	if err != nil {
		return err
	}
	self, instances, err := parseSummary(text)
	if err != nil {
		return err
	}
	if self == r.db.Self && maps.Equal(instances, r.instances) {
		return nil
	}
	routers, err := r.fetch(v, instances)
	if err != nil {
		return err
	}
	r.instances = instances
	r.became(Database{Self: self, Routers: routers})
	return nil
}

// became takes in a database, and computes if it says something else than before.
func (r *reader) became(db Database) {
	same := db.Self == r.db.Self && sameRouters(db.Routers, r.db.Routers)
	if r.db = db; !same {
		r.compute()
	}
}

// fetch reads the LSAs whose instance is another one than before.
func (r *reader) fetch(v *kernel.VTY, instances map[netip.Addr]header) (map[netip.Addr]Router, error) {
	var changed []netip.Addr
	routers := make(map[netip.Addr]Router)
	for id, h := range instances {
		if was, known := r.db.Routers[id]; known && r.instances[id] == h {
			routers[id] = was
		} else {
			changed = append(changed, id)
		}
	}
	if len(changed) > fewLSAs {
		text, err := v.Ask("show ip ospf database router json")
		if err != nil {
			return nil, err
		}
		return parseRouters(text)
	}
	for _, id := range changed {
		text, err := v.Ask(fmt.Sprintf("show ip ospf database router %s json", id))
		if err != nil {
			return nil, err
		}
		fresh, err := parseRouters(text)
		if err != nil {
			return nil, err
		}
		maps.Copy(routers, fresh)
	}
	return routers, nil
}

// compute tells the paths: what is left of the old ones first.
func (r *reader) compute() {
	if left, lost := r.computed.Without(r.db); lost {
		r.computed = left
		r.want(left.Spreads)
	}
	began := time.Now()
	computed, err := Compute(r.db, r.choice, r.computed)
	if err != nil {
		r.log.Warn("no paths from the link state", "err", err)
		return
	}
	r.computed = computed
	r.log.Info("paths computed", "routers", len(r.db.Routers), "switches", len(computed.Spreads)+1, "took", time.Since(began))
	r.want(computed.Spreads)
}

// sameRouters says whether two databases say the same: LSAs are refreshed
// without a change, too.
func sameRouters(a, b map[netip.Addr]Router) bool {
	return maps.EqualFunc(a, b, func(x, y Router) bool {
		return x.ID == y.ID && slices.Equal(x.Links, y.Links) && slices.Equal(x.Stubs, y.Stubs)
	})
}
