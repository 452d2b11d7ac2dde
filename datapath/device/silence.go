package device

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// The kernel hands frames to groups to the macvlan and to the host's stack. So that
// nobody reaches the host by the interface meanwhile, rules of nftables drop there
// what its stack gets: tables of their own, one for IP and one for ARP.

func tablesOf(name string) []*nftables.Table {
	return []*nftables.Table{{Family: nftables.TableFamilyINet, Name: name}, {Family: nftables.TableFamilyARP, Name: name}}
}

// chainOf is the first thing that a table's family meets: before connections are
// tracked, and for ARP its input, which has the same number.
func chainOf(t *nftables.Table) *nftables.Chain {
	accept := nftables.ChainPolicyAccept
	return &nftables.Chain{
		Name: "device", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting,
		Priority: nftables.ChainPriorityRaw, Policy: &accept,
	}
}

// silence drops what comes to the host by an interface.
func silence(host *os.File, name, device string) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(host.Fd())))
	if err != nil {
		return err
	}
	in := make([]byte, unix.IFNAMSIZ)
	copy(in, device)
	for _, t := range tablesOf(name) {
		c.AddTable(t)
		c.DelTable(t)
		c.AddTable(t)
		c.AddRule(&nftables.Rule{
			Table: t, Chain: c.AddChain(chainOf(t)), UserData: userdata.AppendString(nil, userdata.TypeComment, device),
			Exprs: []expr.Any{
				&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: in},
				&expr.Verdict{Kind: expr.VerdictDrop},
			},
		})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("keep frames of %s from the host: %w", device, err)
	}
	return nil
}

// hear takes the rules away.
func hear(host *os.File, name string) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(host.Fd())))
	if err != nil {
		return err
	}
	for _, t := range tablesOf(name) {
		c.AddTable(t) // or there may be none to delete
		c.DelTable(t)
	}
	return c.Flush()
}

// silent says whether the rules are there.
func silent(host *os.File, name, device string) (bool, error) {
	c, err := nftables.New(nftables.WithNetNSFd(int(host.Fd())))
	if err != nil {
		return false, err
	}
	for _, t := range tablesOf(name) {
		rules, err := c.GetRules(t, chainOf(t))
		if errors.Is(err, unix.ENOENT) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read rules: %w", err)
		}
		if len(rules) != 1 {
			return false, nil
		}
		if of, _ := userdata.GetString(rules[0].UserData, userdata.TypeComment); of != device {
			return false, nil
		}
	}
	return true, nil
}
