package nat

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"sublet/plan"
	"sublet/vnet"
)

// rule is one rule with what it is, in words: they are its comment in the
// kernel, by which it is found again.
type rule struct {
	chain string
	text  string
	does  []expr.Any
}

func (r rule) String() string { return r.chain + ": " + r.text }

func texts(rules []rule) []string {
	list := make([]string, len(rules))
	for i, r := range rules {
		list[i] = r.String()
	}
	return list
}

// Chains, in the order in which packets meet them.
const (
	chainDNAT    = "prerouting"
	chainForward = "forward"
	chainInput   = "input"
	chainSNAT    = "postrouting"
)

var table = &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "sublet"}

func chains() []*nftables.Chain {
	drop, accept := nftables.ChainPolicyDrop, nftables.ChainPolicyAccept
	return []*nftables.Chain{
		{Name: chainDNAT, Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest, Policy: &accept},
		{Name: chainForward, Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop},
		{Name: chainInput, Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter, Policy: &accept},
		{Name: chainSNAT, Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource, Policy: &accept},
	}
}

// always are refused: what is no unicast address of another machine.
var always = func() (list []vnet.AddrRange) {
	for _, p := range []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"} {
		list = append(list, vnet.RangeOf(netip.MustParsePrefix(p)))
	}
	return list
}()

const (
	refuseAlways  = "refuse always "
	refuseHost    = "refuse host "
	refusePlanned = "refuse "
	publishes     = "publish "
)

// rulesOf are the rules of a gateway on a host with some addresses of its own.
func rulesOf(g plan.Gateway, own []vnet.AddrRange) []rule {
	var rules []rule
	add := func(chain, text string, does ...[]expr.Any) {
		rules = append(rules, rule{chain, text, slices.Concat(does...)})
	}
	for _, p := range g.Publish {
		add(chainDNAT, publishes+p.String(), inBy(expr.CmpOpEq), port(p), dnat(p))
	}
	add(chainForward, "not out again", inBy(expr.CmpOpEq), outBy(expr.CmpOpEq), verdict(expr.VerdictDrop))
	add(chainForward, "within the network", inBy(expr.CmpOpNeq), outBy(expr.CmpOpNeq), verdict(expr.VerdictAccept))
	add(chainForward, "no options", outBy(expr.CmpOpEq), hasOptions(), verdict(expr.VerdictDrop))
	add(chainForward, "no redirects", outBy(expr.CmpOpEq), redirects(), verdict(expr.VerdictDrop))
	add(chainForward, "no source but of the network", outBy(expr.CmpOpEq), sourceIsOutside(), verdict(expr.VerdictDrop))
	for _, list := range []struct {
		text   string
		ranges []vnet.AddrRange
	}{{refuseAlways, always}, {refuseHost, own}, {refusePlanned, g.Refuse}} {
		for _, r := range list.ranges {
			add(chainForward, list.text+r.String(), outBy(expr.CmpOpEq), to(r), verdict(expr.VerdictDrop))
		}
	}
	// A node may answer another as if it were outside, and nothing translates such
	// an answer: it is no connection of the way out's.
	add(chainForward, "no answers as others", outBy(expr.CmpOpEq), state(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), untranslated(), verdict(expr.VerdictDrop))
	add(chainForward, "answers", state(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), verdict(expr.VerdictAccept))
	for _, by := range []struct {
		word string
		by   []expr.Any
	}{{"out", outBy(expr.CmpOpEq)}, {"in", inBy(expr.CmpOpEq)}} {
		add(chainForward, fmt.Sprintf("no more than %d new %s", newPerSecond, by.word), by.by, state(expr.CtStateBitNEW), overRate(), verdict(expr.VerdictDrop))
	}
	add(chainForward, "outwards", outBy(expr.CmpOpEq), state(expr.CtStateBitNEW), verdict(expr.VerdictAccept))
	add(chainForward, "published", inBy(expr.CmpOpEq), published(), verdict(expr.VerdictAccept))
	add(chainInput, "nothing here", inBy(expr.CmpOpEq), verdict(expr.VerdictDrop))
	add(chainSNAT, "as "+g.Address.String(), outBy(expr.CmpOpEq), snat(g.Address))
	return rules
}

// parseRules finds what is planned in the texts of rules.
func parseRules(have []string, own []vnet.AddrRange) (refuse []vnet.AddrRange, publish []plan.Published) {
	for _, text := range have {
		_, text, _ = strings.Cut(text, ": ")
		if s, ok := strings.CutPrefix(text, publishes); ok {
			publish = append(publish, parsePublished(s))
			continue
		}
		if strings.HasPrefix(text, refuseAlways) || strings.HasPrefix(text, refuseHost) {
			continue
		}
		var r vnet.AddrRange
		if s, ok := strings.CutPrefix(text, refusePlanned); ok && r.UnmarshalText([]byte(s)) == nil {
			refuse = append(refuse, r)
		}
	}
	return refuse, publish
}

// parsePublished reads Published.String; what is none equals none planned.
func parsePublished(s string) (p plan.Published) {
	var protocol, to string
	if _, err := fmt.Sscanf(s, "%s %d %s %d", &protocol, &p.Outside, &to, &p.Port); err != nil {
		return plan.Published{}
	}
	p.UDP = protocol == "udp"
	p.Address, _ = netip.ParseAddr(to)
	return p
}

// writeRules replaces all rules at once.
func writeRules(ns *os.File, rules []rule) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return err
	}
	c.AddTable(table)
	c.DelTable(table)
	c.AddTable(table)
	byName := make(map[string]*nftables.Chain)
	for _, chain := range chains() {
		byName[chain.Name] = c.AddChain(chain)
	}
	for _, r := range rules {
		c.AddRule(&nftables.Rule{Table: table, Chain: byName[r.chain], Exprs: r.does, UserData: userdata.Append(nil, userdata.TypeComment, append([]byte(r.text), 0))})
	}
	return c.Flush()
}

func deleteRules(ns *os.File) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return err
	}
	c.AddTable(table) // or there may be none to delete
	c.DelTable(table)
	return c.Flush()
}

// readRules reads what rules there are, in words, of chains that are as made.
func readRules(ns *os.File) (list []string, err error) {
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return nil, err
	}
	have, err := c.ListChainsOfTableFamily(table.Family)
	if err != nil {
		return nil, err
	}
	for _, chain := range chains() {
		if !slices.ContainsFunc(have, func(h *nftables.Chain) bool { return sameChain(h, chain) }) {
			continue
		}
		rules, err := c.GetRules(table, chain)
		if errors.Is(err, unix.ENOENT) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, r := range rules {
			text := bytes.TrimRight(userdata.Get(r.UserData, userdata.TypeComment), "\x00")
			list = append(list, rule{chain: chain.Name, text: string(text)}.String())
		}
	}
	return list, nil
}

func sameChain(a, b *nftables.Chain) bool {
	return a.Table.Name == b.Table.Name && a.Name == b.Name && a.Type == b.Type && a.Policy != nil && *a.Policy == *b.Policy &&
		a.Hooknum != nil && *a.Hooknum == *b.Hooknum && a.Priority != nil && *a.Priority == *b.Priority
}

// What rules are made of.

func name(op expr.CmpOp, key expr.MetaKey) []expr.Any {
	text := make([]byte, unix.IFNAMSIZ)
	copy(text, device)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: text}}
}

func inBy(op expr.CmpOp) []expr.Any  { return name(op, expr.MetaKeyIIFNAME) }
func outBy(op expr.CmpOp) []expr.Any { return name(op, expr.MetaKeyOIFNAME) }

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

// sourceIsOutside says that the way back to a packet's source is the device.
func sourceIsOutside() []expr.Any {
	text := make([]byte, unix.IFNAMSIZ)
	copy(text, device)
	return []expr.Any{
		&expr.Fib{Register: 1, FlagSADDR: true, ResultOIFNAME: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: text},
	}
}

// to compares the destination, at byte 16 of the IPv4 header.
func to(r vnet.AddrRange) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: r.First.AsSlice(), ToData: r.Last.AsSlice()},
	}
}

// bitsOf says that some of the bits are set that a key of conntrack has.
func bitsOf(key expr.CtKey, bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Register: 1, Key: key},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

func state(bits uint32) []expr.Any { return bitsOf(expr.CtKeySTATE, bits) }

// What has become of a connection (linux/netfilter/nf_conntrack_common.h).
const (
	srcNAT = 1 << 4 // IPS_SRC_NAT
	dstNAT = 1 << 5 // IPS_DST_NAT
)

// published says that a rule of chainDNAT sent the connection here.
func published() []expr.Any { return bitsOf(expr.CtKeySTATUS, dstNAT) }

// untranslated says that no rule gave the connection another address.
func untranslated() []expr.Any {
	does := bitsOf(expr.CtKeySTATUS, srcNAT|dstNAT)
	does[len(does)-1].(*expr.Cmp).Op = expr.CmpOpEq
	return does
}

// hasOptions says that a header of IPv4 is longer than 5 words: a source route would
// lead where the destination does not say.
func hasOptions() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 0, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{0x0f}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{5}},
	}
}

// redirects says that it is ICMP's type 5, by which only routers of the network
// outside tell others their way.
func redirects() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_ICMP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{5}},
	}
}

// newPerSecond bounds new connections in each direction, and with the time-outs of
// settle what the kernel keeps of them: memory that no control group counts.
const newPerSecond = 1000

func overRate() []expr.Any {
	return []expr.Any{&expr.Limit{Type: expr.LimitTypePkts, Rate: newPerSecond, Unit: expr.LimitTimeSecond, Burst: newPerSecond, Over: true}}
}

// port compares protocol and destination port, at byte 2 of the header of both.
func port(p plan.Published) []expr.Any {
	protocol := byte(unix.IPPROTO_TCP)
	if p.UDP {
		protocol = unix.IPPROTO_UDP
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(p.Outside)},
	}
}

func dnat(p plan.Published) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: p.Address.AsSlice()},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(p.Port)},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2, Specified: true},
	}
}

func snat(as netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: as.AsSlice()},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
	}
}
