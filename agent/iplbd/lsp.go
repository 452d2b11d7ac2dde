package iplbd

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What FRR prints of IS-IS is text: its JSON leaves out what LSPs say (FRR 8.4).
var (
	lspLine    = regexp.MustCompile(`^(\S+)\.([0-9a-f]{2})-[0-9a-f]{2}\s+(\*?)\s*\d+\s+0x[0-9a-f]+\s+0x[0-9a-f]+\s+(\d+|\(\d+\))\s+\d/\d/(\d)`)
	nameLine   = regexp.MustCompile(`([0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})\s+(\S+)`)
	reachLine  = regexp.MustCompile(`^  Extended Reachability: ([0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})\.([0-9a-f]{2}) \(Metric: (\d+)\)`)
	prefixLine = regexp.MustCompile(`^  Extended IP Reachability: (\S+) \(Metric: \d+\)`)
	localLine  = regexp.MustCompile(`^    Local Interface IP Address\(es\): (\S+)`)
	holdtime   = regexp.MustCompile(`\s+(\d+|\(\d+\))(\s+\d/\d/\d)`)
)

// withoutHoldtimes is a list of LSPs without what changes every second.
func withoutHoldtimes(summary []byte) []byte { return holdtime.ReplaceAll(summary, []byte("$2")) }

// lsp is what a system says of itself (ISO 10589, RFC 5305). Fragments are joined.
type lsp struct {
	system  string // its identifier
	own     bool
	stub    bool // overloaded: it carries nothing for others
	id      netip.Addr
	address netip.Addr // of an interface
	reaches []reach
	stubs   []netip.Prefix
}

// reach is a point-to-point link to another system.
type reach struct {
	system string
	local  netip.Addr // of its own end; invalid: not told
	metric int
}

// parseISIS reads "show isis hostname" and "show isis database detail" of FRR.
// Routers are called by their traffic engineering router id, or by an address.
func parseISIS(names, text []byte) (Database, error) {
	systems := make(map[string]string)
	for _, m := range nameLine.FindAllSubmatch(names, -1) {
		systems[string(m[2])] = string(m[1])
	}
	lsps := make(map[string]*lsp)
	var at *lsp
	for line := range strings.Lines(string(text)) {
		if m := lspLine.FindStringSubmatch(line); m != nil {
			at = begin(lsps, systems, m)
		} else if at != nil {
			at.line(strings.TrimRight(line, "\r\n"))
		}
	}
	return databaseOf(lsps)
}

// begin is the LSP that a line begins, or goes on with; nil: it is of a network of many,
// or is being flushed.
func begin(lsps map[string]*lsp, systems map[string]string, m []string) *lsp {
	if m[2] != "00" || strings.HasPrefix(m[4], "(") {
		return nil
	}
	system, known := systems[m[1]]
	if !known {
		system = m[1]
	}
	if lsps[system] == nil {
		lsps[system] = &lsp{system: system}
	}
	l := lsps[system]
	l.own, l.stub = l.own || m[3] == "*", l.stub || m[5] == "1"
	return l
}

// line takes in one thing that a system says.
func (l *lsp) line(text string) {
	parse := func(a string) (found netip.Addr) {
		found, _ = netip.ParseAddr(strings.TrimSpace(a)) // invalid: not told
		return found
	}
	if id, ok := strings.CutPrefix(text, "  TE Router ID: "); ok {
		l.id = parse(id)
	} else if a, ok := strings.CutPrefix(text, "  IPv4 Interface Address: "); ok && !l.address.IsValid() {
		l.address = parse(a)
	} else if m := reachLine.FindStringSubmatch(text); m != nil {
		metric, err := strconv.Atoi(m[3])
		if m[2] == "00" && err == nil && metric > 0 {
			l.reaches = append(l.reaches, reach{system: m[1], metric: metric})
		}
	} else if m := localLine.FindStringSubmatch(text); m != nil && len(l.reaches) > 0 {
		l.reaches[len(l.reaches)-1].local = parse(m[1])
	} else if m := prefixLine.FindStringSubmatch(text); m != nil {
		if p, err := netip.ParsePrefix(m[1]); err == nil && p.Addr().Is4() {
			l.stubs = append(l.stubs, p)
		}
	}
}

// databaseOf names systems by their addresses. One without any is none of the fabric.
func databaseOf(lsps map[string]*lsp) (Database, error) {
	db, ids := Database{Routers: make(map[netip.Addr]Router)}, make(map[string]netip.Addr)
	for system, l := range lsps {
		if !l.id.IsValid() {
			l.id = l.address
		}
		if l.id.Is4() {
			ids[system] = l.id
		}
		if l.own {
			db.Self = l.id
		}
	}
	if !db.Self.Is4() {
		return Database{}, errors.New("isisd tells no address of its own: give it a loopback with an address")
	}
	for system, id := range ids {
		if _, twice := db.Routers[id]; twice {
			return Database{}, fmt.Errorf("two systems of IS-IS have the address %s", id)
		}
		db.Routers[id] = lsps[system].router(id, ids)
	}
	return db, nil
}

func (l *lsp) router(id netip.Addr, ids map[string]netip.Addr) Router {
	r := Router{ID: id, Stubs: l.stubs}
	for _, to := range l.reaches {
		cost := to.metric
		if l.stub {
			cost = maxCost
		}
		if neighbour, known := ids[to.system]; known {
			r.Links = append(r.Links, RouterLink{neighbour, to.local, cost})
		}
	}
	slices.SortFunc(r.Links, func(a, b RouterLink) int {
		if c := a.Neighbour.Compare(b.Neighbour); c != 0 {
			return c
		}
		return a.Address.Compare(b.Address)
	})
	return r
}
