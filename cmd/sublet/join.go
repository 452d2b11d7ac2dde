package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sublet/report"
	"sublet/vnet"
)

func (a *app) join() *cobra.Command {
	var node, public string
	revoke := false
	c := &cobra.Command{
		Use:   "join NAME --node NODE > wg.conf",
		Short: "Let a machine become a node, over WireGuard",
		Long: `Print the settings of WireGuard (wg-quick) with which a machine of yours becomes
a node whose request states join. The machine has the node's address and rate.

The private key is printed once and kept nowhere: joining again makes a new one,
and shuts out who had the former. With --public-key the machine keeps its own.`,
		Example:           "  sublet join office --node laptop > wg.conf\n  sublet join office --node laptop --public-key \"$(wg pubkey < private.key)\"\n  sublet join office --node laptop --revoke",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePart(joiningNodes),
		RunE: func(c *cobra.Command, args []string) error {
			of := args[0]
			if node != "" {
				of += "/" + node
			}
			client, id, name, err := a.part(c.Context(), of, "ACCESS")
			if err != nil {
				return err
			}
			if revoke {
				return client.Revoke(c.Context(), id, name)
			}
			joined, err := client.Join(c.Context(), id, name, public)
			if err != nil {
				return err
			}
			return writeJoined(a.out, of, joined)
		},
	}
	c.Flags().StringVar(&node, "node", "", "node that the machine becomes")
	c.Flags().StringVar(&public, "public-key", "", "public key of the machine (default: a pair is made for it)")
	c.Flags().BoolVar(&revoke, "revoke", false, "let no machine be the node any more")
	c.MarkFlagsMutuallyExclusive("public-key", "revoke")
	return c
}

func joiningNodes(t vnet.Topology) (names []string) {
	for _, n := range t.Nodes {
		if n.Join != "" {
			names = append(names, n.Name)
		}
	}
	return names
}

// keepAlive is how often a machine sends something, in seconds: address translation
// on the way forgets those that are silent, and one that the host has lost is heard
// again after it.
const keepAlive = 25

// writeJoined writes settings as wg-quick(8) reads them.
func writeJoined(w io.Writer, of string, j report.Joined) error {
	var others []string
	for _, p := range j.Others {
		others = append(others, p.String())
	}
	key := "PrivateKey = " + j.Private
	if j.Private == "" {
		key = "# PrivateKey = the one of " + j.Machine
	}
	_, err := fmt.Fprintf(w, `# node %s
[Interface]
%s
Address = %s
MTU = %d

[Peer]
PublicKey = %s
Endpoint = %s
AllowedIPs = %s
PersistentKeepalive = %d
`, of, key, j.Address, j.MTU, j.Public, j.Endpoint, strings.Join(others, ", "), keepAlive)
	return err
}
