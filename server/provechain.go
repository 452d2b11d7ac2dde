package server

import (
	"cmp"
	"time"

	"sublet/measure"
	"sublet/report"
	"sublet/vnet"
)

// meantDrops are packets that functions of a host let not pass in the second before a
// time, as they should.
type meantDrops struct {
	packets uint64
	at      time.Time
	why     string // the chain is short of processor time there; "": it is not
}

// through notes what a chain's functions on a host dropped. What a program does not give
// back it is taken to drop on purpose, unless it is short of processor time.
func (l *provedWay) through(host vnet.HostID, why string, was, is report.LinkSums, at time.Time) {
	m := meantDrops{packets: is[0] - was[0], at: at, why: why}
	if in, back := is[1]-was[1], is[2]-was[2]; why == "" && in > back {
		m.packets += in - back
	}
	if l.meant == nil {
		l.meant = make(map[vnet.HostID]meantDrops)
	}
	l.meant[host] = m
}

// ofMinimum is the part of a chain's rate that must have passed where it is held: there
// is no queue, so what passes of a rate in one second is a little less than it or more.
const ofMinimum = 0.97

// ofChain adds what functions dropped as they should to what left the chain, so that both
// ends compare, and says which is short of processor time.
func (l *provedWay) ofChain(second *measure.Second, now time.Time) {
	second.Min = vnet.Rate(ofMinimum * float64(second.Min))
	if second.First == nil {
		return
	}
	first, last := *second.First, *second.Last
	for host, m := range l.meant {
		if now.Sub(m.at).Abs() >= fresh {
			delete(l.meant, host)
			continue
		}
		if m.why != "" {
			second.Trouble = cmp.Or(second.Trouble, "short of processor time on "+string(host)+": "+m.why)
		}
		last.Packets += m.packets
		if first.Packets > 0 {
			last.Rate += vnet.Rate(float64(first.Rate) * float64(m.packets) / float64(first.Packets))
		}
	}
	second.First, second.Last = &first, &last
}

// passedOf is an end with what was not dropped there alone.
func passedOf(end endNow) endNow {
	if end.Packets > 0 {
		passed := end.Packets - min(end.Dropped, end.Packets)
		end.Rate, end.Packets = vnet.Rate(float64(end.Rate)*float64(passed)/float64(end.Packets)), passed
	}
	end.Dropped = 0
	return end
}
