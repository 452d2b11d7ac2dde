package iplbd

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"sublet/datapath/iplb"
	"sublet/plan"
)

// Probing says how paths are watched.
type Probing struct {
	Every time.Duration // between probes of a path that carries something; 0: no probes
	Lost  int           // probes in a row without an answer after which a path is dead
	// Send puts a probe on the wire.
	Send func(*iplb.Probe, uint32) error
}

// Bounds of probing. Every slowTicks ticks it is looked which paths carry
// something; the others of their spreads are probed as often. Paths of spreads
// that carry nothing share one probe a tick, for a host may have thousands. A
// dead path is taken back after enough answers in a row and a time
// that doubles each time it dies again: no flow goes to and fro with it.
const (
	slowTicks   = 10
	enough      = 10
	leastHold   = time.Second
	mostHold    = 32 * time.Second
	forgetFlaps = time.Minute
)

// pathProbe is what is known of one path's liveness.
type pathProbe struct {
	prefix netip.Prefix
	index  int
	of     plan.RelayPath
	path   uint32 // number in the table
	probe  *iplb.Probe

	sent, heard uint32
	times       [256]time.Duration // when a probe was sent, by its number
	rtt         time.Duration

	load   uint64 // packets, when last looked
	used   uint64 // tick when the path last carried something
	down   bool
	since  time.Duration // of being down
	good   int           // answers in a row while down
	hold   time.Duration
	next   uint64 // tick of the next probe
	active bool
}

// pathProbes are the paths of one spread.
type pathProbes []*pathProbe

// probeSpread begins to probe the paths of a spread that say where to turn.
// Paths that were watched already go on as they are.
func (d *Daemon) probeSpread(s plan.Spread) {
	old, fresh := d.watches[s.Prefix], pathProbes{}
	for i, p := range s.Paths {
		if !p.Turn.IsValid() || d.Probing.Every <= 0 {
			continue
		}
		if w := old.find(p); w != nil {
			w.index = i
			fresh = append(fresh, w)
			continue
		}
		if w := d.newPathProbe(s, i); w != nil {
			fresh = append(fresh, w)
		}
	}
	d.watches[s.Prefix] = fresh
}

// at is the probe state of a spread's i-th path; nil: it is not probed.
func (w pathProbes) at(i int) *pathProbe {
	for _, one := range w {
		if one.index == i {
			return one
		}
	}
	return nil
}

// find is the probe state of the same path, probed the same way.
func (w pathProbes) find(p plan.RelayPath) *pathProbe {
	for _, one := range w {
		if slices.Equal(one.of.Relays, p.Relays) && one.of.Turn == p.Turn && slices.Equal(one.of.Back, p.Back) {
			return one
		}
	}
	return nil
}

func (d *Daemon) newPathProbe(s plan.Spread, i int) *pathProbe {
	p := s.Paths[i]
	secret := rand.Uint64()
	path, err := d.Table.Watch(s.Prefix, i, secret)
	if err != nil {
		d.Log.Error("path not watched", "err", err)
		return nil
	}
	if err := d.Table.SetUp(s.Prefix, i, true); err != nil {
		d.Log.Error("path not set up", "err", err)
	}
	back := p.Back
	if back == nil {
		back = slices.Clone(p.Relays)
		slices.Reverse(back)
	}
	return &pathProbe{
		prefix: s.Prefix, index: i, of: p, path: path, hold: leastHold, next: d.tick + uint64(rand.IntN(slowTicks)),
		probe: iplb.NewProbe(d.Table.Source, p.Relays, p.Turn, back, path, secret),
	}
}

// probe is one tick: it judges what came back, and sends what is due.
func (d *Daemon) probe() {
	now := iplb.Now()
	if d.tick%slowTicks == 0 {
		d.findUsed()
	}
	late := now-d.ticked > 3*d.Probing.Every // this process was held up: let answers come in before judging
	d.tick, d.ticked = d.tick+1, now
	count := 0
	for _, all := range d.watches {
		count += len(all)
	}
	for _, all := range d.watches {
		slow := uint64(max(slowTicks, count))
		if slices.ContainsFunc(all, d.inUse) {
			slow = slowTicks
		}
		for _, w := range all {
			if w.next > d.tick && !w.active {
				continue
			}
			d.examine(w, now, late, slow)
		}
	}
}

// examine judges one path and sends its next probe.
func (d *Daemon) examine(w *pathProbe, now time.Duration, late bool, slow uint64) {
	heard, at, err := d.Table.HeardAt(w.path)
	if err != nil {
		d.Log.Error("probe not read", "err", err)
		return
	}
	if heard != w.heard {
		w.rtt = at - w.times[heard%uint32(len(w.times))]
		w.good += int(heard - w.heard)
		w.heard = heard
	}
	if !late {
		d.updateHealth(w, now)
	}
	w.next = d.tick + slow
	if w.down {
		w.next = d.tick + slowTicks
	} else if d.inUse(w) || w.heard != w.sent { // one that is missing is looked into at once
		w.next = d.tick + 1
	}
	w.active = w.next == d.tick+1
	w.sent++
	w.times[w.sent%uint32(len(w.times))] = now
	if err := d.Probing.Send(w.probe, w.sent); err != nil {
		d.Log.Debug("probe not sent", "prefix", w.prefix, "err", err) // no route: a lost one
	}
}

// findUsed notes which paths carry something. One that does from now on is
// probed at once.
func (d *Daemon) findUsed() {
	packets, err := d.Table.Carried()
	if err != nil {
		d.Log.Error("loads not read", "err", err)
		return
	}
	for _, all := range d.watches {
		for _, w := range all {
			if int(w.path) >= len(packets) || packets[w.path] == w.load {
				continue // a number beyond: of a path that is gone, whose successors could not be put
			}
			if w.load, w.used = packets[w.path], d.tick; !w.active {
				w.next = d.tick
			}
		}
	}
}

// inUse says whether a path has carried something in about the last second.
func (d *Daemon) inUse(w *pathProbe) bool {
	return w.used > 0 && time.Duration(d.tick-w.used)*d.Probing.Every < time.Second+2*slowTicks*d.Probing.Every
}

// updateHealth finds a path dead whose last probes are all unanswered, the first of
// them long enough ago; or alive again.
func (d *Daemon) updateHealth(w *pathProbe, now time.Duration) {
	lost := w.sent - w.heard
	if w.down {
		if lost > 2 {
			w.good = 0
		}
		if w.good >= enough && now-w.since >= w.hold {
			d.setHealth(w, now, true)
		}
		return
	}
	if lost < uint32(d.Probing.Lost) {
		return
	}
	first := w.times[(w.heard+1)%uint32(len(w.times))]
	if int(lost) >= len(w.times) || now-first >= time.Duration(d.Probing.Lost)*d.Probing.Every-d.Probing.Every/2 {
		d.setHealth(w, now, false)
	}
}

// doubted says of a path that is not dead yet that more of its last probes are
// unanswered than are under way: no flow is sent there for a better balance.
func (d *Daemon) doubted(w *pathProbe) bool {
	return int(w.sent-w.heard) > 2+int(w.rtt/max(d.Probing.Every, 1))
}

// setHealth says of a path that it is dead, or alive again.
func (d *Daemon) setHealth(w *pathProbe, now time.Duration, up bool) {
	if err := d.Table.SetUp(w.prefix, w.index, up); err != nil {
		d.Log.Error("path not changed", "err", err)
		return
	}
	why := "alive"
	if !up {
		why = "dead"
		if now-w.since < w.hold+forgetFlaps && w.since > 0 {
			w.hold = min(2*w.hold, mostHold)
		} else {
			w.hold = leastHold
		}
		w.since = now
	}
	w.down, w.good = !up, 0
	relays := d.spreads[w.prefix].Paths[w.index].Relays
	d.Log.Info("path "+why, "prefix", w.prefix, "relays", relays)
	d.note(Move{Prefix: w.prefix, From: relays, Why: why})
}

// safe says whether flows may be moved to a path: it is not feared to be dead.
func (d *Daemon) safe(prefix netip.Prefix, i int) bool {
	w := d.watches[prefix].at(i)
	return w == nil || !d.doubted(w)
}

// health of a path, and the time of its last probe.
func (d *Daemon) health(prefix netip.Prefix, i int) (Health, time.Duration) {
	switch w := d.watches[prefix].at(i); {
	case w == nil:
		return Unprobed, 0
	case w.down:
		return Down, w.rtt
	default:
		return Up, w.rtt
	}
}
