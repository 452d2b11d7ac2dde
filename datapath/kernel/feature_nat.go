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
		{"device macvlan", false, macvlanFeature(), "routers with nat and nodes with devices cannot be made"},
		{"nftables with NAT and fib", false, filterFeature(), means},
		{"nftables for inet and arp", false, silenceFeature(), "nodes with devices cannot be made"},
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

// silenceFeature makes chains where a host's stack gets packets and ARP.
func silenceFeature() error {
	if Loadable("nf_tables") {
		return nil
	}
	return trial(func(*Conn) error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		for _, family := range []nftables.TableFamily{nftables.TableFamilyINet, nftables.TableFamilyARP} {
			c.AddChain(&nftables.Chain{
				Name: "trial", Table: c.AddTable(&nftables.Table{Family: family, Name: "trial"}), Type: nftables.ChainTypeFilter,
				Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw,
			})
		}
		return c.Flush()
	})
}
