package iplbd

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"sublet/datapath/iplb"
	"sublet/fabric/spread"
	"sublet/plan"
)

// idle is after how long without a packet a flow is forgotten (Nakamura, thesis,
// section 5.4.1; the author's module has the same).
const idle = 60 * time.Second

// moved flows are remembered up to this many.
const lastMoves = 64

// flowRate is what a flow had carried at the last round.
type flowRate struct {
	bytes  uint64
	rate   float64 // smoothed, bytes a round
	seen   uint64  // number of the round
	silent int     // rounds in a row without a byte
}

// flowID names a flow below a prefix.
type flowID struct {
	prefix netip.Prefix
	key    iplb.FlowKey
}

// rearrange moves, for each prefix in flow mode, flows that even the most and
// the least loaded path (Nakamura, thesis, section 5.4.1, algorithm 1).
func (d *Daemon) rearrange() {
	flows, err := d.Table.AllFlows(idle)
	if err != nil {
		d.Log.Error("flows not read", "err", err)
		return
	}
	d.round++
	d.readTunnelLoads()
	for prefix, spread := range d.spreads {
		rates := d.rates(prefix, flows[prefix])
		if cmp.Or(spread.Mode, plan.PerFlow) == plan.PerFlow {
			d.hold(spread, flows[prefix])
			d.balance(spread, flows[prefix], rates)
		}
	}
	for id, c := range d.counted {
		if c.seen != d.round {
			delete(d.counted, id)
			delete(d.lastMoved, id)
		}
	}
}

// over is after how many silent rounds a flow loads nothing: rates are smoothed,
// and what has ended would seem to go on.
const over = 2

// rates are the bytes of flows a round; new ones count from now on.
func (d *Daemon) rates(prefix netip.Prefix, flows []iplb.Flow) []float64 {
	rates := make([]float64, len(flows))
	for i, f := range flows {
		id := flowID{prefix, f.FlowKey}
		was, known := d.counted[id]
		now := flowRate{bytes: f.Bytes, seen: d.round}
		if known && f.Bytes == was.bytes {
			now.silent = was.silent + 1
		}
		if known && f.Bytes >= was.bytes && now.silent < over {
			now.rate = float64(f.Bytes - was.bytes)
			if was.rate > 0 {
				now.rate = spread.Smooth(was.rate, now.rate)
			}
		}
		rates[i], d.counted[id] = now.rate, now
	}
	return rates
}

// Bounds of rearranging: moves of a prefix in one round, rounds that a moved flow
// stays where it is, and the part of a path's mean load below which a flow is
// left alone.
const (
	movesAtOnce = 16
	restingFor  = 5
	evenEnough  = 0.01
)

// balance rearranges the flows of one prefix over its paths that are up and
// not leased, by rates over weights.
func (d *Daemon) balance(split plan.Spread, flows []iplb.Flow, rates []float64) {
	open, index := d.usable(split)
	var list []spread.Flow
	var which []int
	total, grain := 0.0, 0.0
	for i, f := range flows {
		grain = max(grain, float64(f.Bytes)/float64(max(f.Packets, 1)))
		if at, in := index[f.Path]; in {
			_, pinned := d.pins[flowID{split.Prefix, f.FlowKey}]
			list = append(list, spread.Flow{Rate: rates[i], Path: at, Fixed: pinned})
			which = append(which, i)
			total += rates[i]
		}
	}
	for _, f := range d.leaseLoads(split, open) {
		list = append(list, f)
		total += f.Rate
	}
	weights := weightsOf(split, open)
	fixSmall(list, evenEnough*total/float64(len(open)))
	for range movesAtOnce {
		m, ok := spread.Rearrange(list, weights, grain)
		if !ok || d.settling(split.Prefix, flows[which[m.Flow]]) || !d.safe(split.Prefix, open[m.To]) {
			return
		}
		d.move(split, flows[which[m.Flow]], open[m.From], open[m.To])
		list[m.Flow].Path = m.To
	}
}

// fixSmall leaves flows where they are that do not matter. One on a path of
// hardly any weight would else be the first to move, and the only one looked at.
func fixSmall(list []spread.Flow, rate float64) {
	for i := range list {
		list[i].Fixed = list[i].Fixed || list[i].Rate < rate
	}
}

// settling says that a flow has moved lately. It is the one that would even the
// loads: to move a smaller one in its stead would not keep it from being next.
func (d *Daemon) settling(prefix netip.Prefix, f iplb.Flow) bool {
	last, moved := d.lastMoved[flowID{prefix, f.FlowKey}]
	return moved && d.round-last < restingFor
}

func (d *Daemon) move(spread plan.Spread, f iplb.Flow, from, to int) {
	d.lastMoved[flowID{spread.Prefix, f.FlowKey}] = d.round
	if err := d.Table.Move(spread.Prefix, f.FlowKey, to); err != nil {
		d.Log.Debug("flow not moved", "flow", f.FlowKey, "err", err) // it ended
		return
	}
	d.note(Move{Prefix: spread.Prefix, Flow: flowText(f.FlowKey), From: spread.Paths[from].Relays, To: listed(spread.Paths[to].Relays), Why: "balance"})
}

// usable lists the paths that flows may be moved between, and for each path its
// place in that list.
func (d *Daemon) usable(spread plan.Spread) (open []int, index map[int]int) {
	index = make(map[int]int)
	for i, p := range spread.Paths {
		if health, _ := d.health(spread.Prefix, i); health == Down || p.Lease.Network != "" {
			continue
		}
		index[i] = len(open)
		open = append(open, i)
	}
	return open, index
}

func weightsOf(split plan.Spread, open []int) []float64 {
	weights := make([]uint32, len(open))
	for at, i := range open {
		weights[at] = split.Paths[i].Weight
	}
	return spread.Shared(weights)
}

func flowText(k iplb.FlowKey) string { return fmt.Sprintf("%s>%s/%d", k.Source, k.Target, k.Protocol) }

func (d *Daemon) note(m Move) {
	m.At, m.From = time.Now(), listed(m.From)
	d.moved++
	d.moves = append(d.moves, m)
	if len(d.moves) > lastMoves {
		d.moves = d.moves[len(d.moves)-lastMoves:]
	}
}
