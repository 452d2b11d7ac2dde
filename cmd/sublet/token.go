package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

func (a *app) token() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens, by which scripts and browsers call as you",
		Long: `A token is a secret by which a script or a browser calls the server as its tenant,
over TLS (sublet serve --listen) or the socket: Authorization: Bearer TOKEN. It is
never the operator, and makes no tokens. The server keeps its hash alone.`,
		Example: "  sublet token create --scope read --for 8h\n  sublet token list\n  sublet token revoke 0123456789ab",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return c
}

func (a *app) tokenCreate() *cobra.Command {
	var tenant, span string
	var networks []string
	ask := api.TokenAsk{}
	c := a.noun(&cobra.Command{
		Use:   "create [NAME]",
		Short: "Make a token, and print it this once",
		Long: `Make a token and print it: it is shown this once. With --scope read it sees what its
tenant sees, and no packets, and changes nothing; with --scope write it does what its
tenant may. With --network it is for those networks alone.`,
		Example: "  sublet token create --scope read --for 8h\n  sublet token create ci --scope write --network hello --for 30d",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := a.checkFormat(); err != nil {
				return err
			}
			ask.Name, ask.Tenant = strings.Join(args, ""), vnet.TenantID(tenant)
			if ask.For, err = vnet.ParseDuration(span); err != nil {
				return badInput{fmt.Errorf("--for: %w", err)}
			}
			for _, n := range networks {
				ask.Networks = append(ask.Networks, vnet.VNetID(n))
			}
			made, err := a.client().CreateToken(c.Context(), ask)
			if err != nil {
				return err
			}
			if a.format == "table" {
				_, err = fmt.Fprintln(a.out, made.Text)
				return err
			}
			return a.print(made, "", nil)
		},
	})
	c.Flags().StringVar(&ask.Scope, "scope", trust.ScopeRead, "read: sees; write: does what its tenant may")
	c.Flags().StringSliceVar(&networks, "network", nil, "only for this network; may be given several times")
	c.Flags().StringVar(&span, "for", "30d", "how long it is good, at most 366d")
	c.Flags().StringVar(&tenant, "tenant", "", "tenant as whom it calls; another one than you only for the operator")
	return c
}

func (a *app) tokenList() *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "list",
		Short:   "List tokens: whose, for what, until when",
		Example: "  sublet token list\n  sublet token list -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			list, err := a.client().Tokens(c.Context())
			if err != nil {
				return err
			}
			var rows [][]string
			for _, t := range list {
				rows = append(rows, []string{t.ID, orDash(t.Name), string(t.Tenant), t.Scope, networksOf(t), t.Created.Format(time.RFC3339), t.Expires.Format(time.RFC3339)})
			}
			return a.printAll(list, "ID NAME TENANT SCOPE NETWORKS CREATED EXPIRES", rows, "no tokens")
		},
	})
}

func networksOf(t trust.Token) string {
	var names []string
	for _, n := range t.Networks {
		names = append(names, string(n))
	}
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ",")
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID...",
		Short:   "Make tokens worthless, from now on",
		Example: "  sublet token revoke 0123456789ab",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, id := range args {
				if err := a.client().RevokeToken(c.Context(), id); err != nil {
					return err
				}
				fmt.Fprintf(a.out, "token %s is revoked\n", id)
			}
			return nil
		},
	}
}
