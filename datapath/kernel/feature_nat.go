package kernel

import (
	"errors"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// wayOutFeatures are what ways out need.
func wayOutFeatures() []Feature {
	const means = "routers with nat cannot be made"
	return []Feature{
		{"device macvlan", false, macvlanFeature(), means},
		{"nftables with NAT and fib", false, filterFeature(), means},
	}
}

// macvlanFeature asks for a device on none: a kernel that knows the kind says
// that this is missing.
func macvlanFeature() error {
	err := deviceFeature("macvlan")
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// filterFeature makes a chain that translates addresses and a rule that looks up
// a route.
func filterFeature() error {
	if slices.ContainsFunc([]string{"nf_tables", "nft_chain_nat", "nft_fib_ipv4"}, Loadable) {
		return nil
	}
	return trial(func(*Conn) error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "trial"})
		chain := c.AddChain(&nftables.Chain{
			Name: "trial", Table: table, Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest,
		})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Fib{Register: 1, FlagSADDR: true, ResultOIFNAME: true}}})
		return c.Flush()
	})
}
