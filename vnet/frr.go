package vnet

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a tenant tells a router.
const (
	MaxFRR       = 32 << 10 // bytes of a configuration
	maxStatement = 1024     // bytes of one of its lines
	MaxNeighbors = 64
)

// Neighbor is a speaker of BGP that a router is told of beside those at its links.
type Neighbor struct {
	Address netip.Addr `json:"address"`
	AS      uint32     `json:"as"`
}

// checkNeighbors checks those of a router.
func (n VirtualNode) checkNeighbors(path string) error {
	switch {
	case len(n.Neighbors) > 0 && n.Protocol != ProtocolBGP:
		return fieldf(path, "only routers with protocol bgp have neighbours: leave it out, or state protocol: bgp")
	case len(n.Neighbors) > MaxNeighbors:
		return fieldf(path, "%d neighbours are more than %d: state fewer", len(n.Neighbors), MaxNeighbors)
	}
	for i, b := range n.Neighbors {
		a := b.Address
		switch {
		case !a.IsValid() || !a.IsGlobalUnicast() || a.Zone() != "" || a.Is4In6():
			return fieldf(at(path, i)+".address", "is no address that a session can lead to: state one such as 10.0.0.2 or 2001:db8::2")
		case a == n.Address:
			return fieldf(at(path, i)+".address", "%s is the router's own: state the neighbour's", a)
		case slices.ContainsFunc(n.Neighbors[:i], func(c Neighbor) bool { return c.Address == a }):
			return fieldf(at(path, i)+".address", "%s is stated twice: remove one", a)
		case b.AS == 0 || b.AS > MaxAS:
			return fieldf(at(path, i)+".as", "%d is not between 1 and %d: state the neighbour's autonomous system, such as 65001", b.AS, uint32(MaxAS))
		}
	}
	return nil
}

// refused are first words of FRR's statements (8.4; those of daemons in FRRDaemons
// and of vtysh) that a router's configuration may not have, and why. Others
// say how to route. What a daemon could do by them it does as the tenant, who
// may also use vtysh; they are kept out of requests because nobody who reads one
// looks for them there.
var refused = map[string]string{
	"agentx": loads, "bmp": loads, "fpm": loads, "pcep": loads, "rpki": loads, "yang": loads, "zebra": loads,
	"banner": files, "copy": files, "dump": files, "log": files, "write": files,
	"enable": access, "line": access, "password": access, "service": access, "username": access, "user": access,
	"clear": runs, "configure": runs, "disable": runs, "do": runs, "find": runs, "list": runs, "output": runs, "ping": runs, "show": runs,
	"ssh": runs, "start-shell": runs, "telnet": runs, "terminal": runs, "traceroute": runs,
	"debug":                       "fills logs",
	"allow-reserved-ranges":       "is the operator's",
	"netns":                       "enters other namespaces",
	"vrf":                         "makes tables that Sublet does not keep",
	"mpls":                        "needs a kernel with MPLS",
	"pseudowire":                  "needs a kernel with MPLS",
	"pbr-map":                     "is of a daemon that routers do not run",
	"vrrp":                        "is of a daemon that routers do not run",
	"allow-external-route-update": "lets others change routes",
}

const (
	loads  = "loads a module, or opens a connection to the outside"
	files  = "reads or writes files"
	access = "opens a way to log in"
	runs   = "is a command and no statement"
)

// wholeWords are statements that a refused one begins with, too.
var wholeWords = []string{"net"}

// routerDaemons are those of the protocols that "router" begins.
var routerDaemons = map[string]string{"bgp": "bgpd", "isis": "isisd", "ospf": "ospfd", "ospf6": "ospf6d", "rip": "ripd", "ripng": "ripngd"}

// statements gives the words of each line that says something, and its number.
func statements(text string, each func(line int, words []string) error) error {
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '!' || words[0][0] == '#' {
			continue
		}
		if words[0] == "no" && len(words) > 1 {
			words = words[1:]
		}
		if err := each(i+1, words); err != nil {
			return err
		}
	}
	return nil
}

// frrHeads are lines that vtysh prints before a configuration, and does not read.
var frrHeads = []string{"Building configuration...", "Current configuration:"}

// FRRText is a configuration without what says nothing to a daemon: the heads
// above, and "line vty" at the end with nothing in it. Its lines keep their numbers.
func FRRText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if slices.Contains(frrHeads, line) {
			lines[i] = "!"
		}
		if line == "line vty" && !slices.ContainsFunc(lines[i+1:], saysMore) {
			return strings.Join(append(lines[:i:i], "!", ""), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// saysMore tells of a line below "line vty" whether it is more than an end.
func saysMore(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && line[0] != '!' && line[0] != '#' && line != "exit" && line != "end"
}

// checkFRR checks the configuration that a tenant gives FRR, as far as that can
// be told without FRR.
func checkFRR(path, text string) error {
	switch {
	case len(text) > MaxFRR:
		return fieldf(path, "%d bytes are more than %d: state less", len(text), MaxFRR)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }):
		return fieldf(path, "has characters that cannot be printed: write plain text with \\n between lines")
	}
	for i, line := range strings.Split(text, "\n") {
		if len(line) > maxStatement {
			return fieldf(path, "line %d is longer than %d bytes: FRR has no such statements", i+1, maxStatement)
		}
	}
	return statements(FRRText(text), func(line int, words []string) error {
		if problem := statementProblem(words); problem != "" {
			return fieldf(path, "line %d: %s: leave it out", line, problem)
		}
		return nil
	})
}

// KeepFRR is what a request can say of a configuration that was made for FRR
// elsewhere, and what is left out of it.
func KeepFRR(text string) (kept string, left []string, err error) {
	lines := strings.Split(FRRText(text), "\n")
	_ = statements(strings.Join(lines, "\n"), func(line int, words []string) error { // it returns none
		if problem := statementProblem(words); problem != "" {
			lines[line-1] = "!"
			left = append(left, fmt.Sprintf("line %d is left out: %s", line, problem))
		}
		return nil
	})
	kept = strings.Join(lines, "\n")
	return kept, left, checkFRR("it", kept)
}

// statementProblem is why a configuration may not have a statement; "": it may.
func statementProblem(words []string) string {
	first := strings.ToLower(words[0])
	if strings.Join(words, " ") == "service integrated-vtysh-config" || slices.Contains(wholeWords, first) {
		return "" // what FRR writes itself
	}
	for word, why := range refused {
		if strings.HasPrefix(word, first) {
			return fmt.Sprintf("%q %s", words[0], cmp.Or(map[bool]string{false: "may be short for " + word + ", which " + why}[word == first], why))
		}
	}
	if first == "router" && len(words) > 1 && routerDaemons[words[1]] == "" {
		return fmt.Sprintf("routers do not run a daemon for %q: there are bgp, isis, ospf, ospf6, rip and ripng", words[1])
	}
	return ""
}

// FRRDaemons are the programs of FRR, but for zebra, that a configuration is for.
func FRRDaemons(text string) []string {
	var list []string
	_ = statements(text, func(_ int, words []string) error { // it returns none
		switch {
		case words[0] == "router" && len(words) > 1:
			list = append(list, routerDaemons[words[1]])
		case (words[0] == "ip" || words[0] == "ipv6") && len(words) > 1 && words[1] == "route":
			list = append(list, "staticd")
		case slices.Contains(words, "bfd"):
			list = append(list, "bfdd")
		}
		return nil
	})
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}
