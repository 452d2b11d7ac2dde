package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) notify() *cobra.Command {
	var tenant string
	c := a.noun(&cobra.Command{
		Use:   "notify",
		Short: "Say where you are told of events: a webhook, a mail address",
		Long: `Say where the server tells you of what sublet events shows: it posts each event as
JSON to a URL of yours, and sends mail of what is wrong, right again or to come, if
the operator lets it. What is posted bears a signature by a secret that is shown once.`,
		Example: "  sublet notify\n  sublet notify set --url https://example.org/hook --mail alice@example.org\n  sublet notify remove",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			n, err := a.client().Notify(c.Context(), vnet.TenantID(tenant))
			if err != nil {
				return err
			}
			return a.printNotify(n)
		},
	})
	c.PersistentFlags().StringVar(&tenant, "tenant", "", "whose; another one than you only for the operator")
	c.AddCommand(a.notifySet(&tenant), a.notifyRemove(&tenant))
	return c
}

func (a *app) printNotify(n api.Notify) error {
	if a.format != "table" {
		return a.print(n, "", nil)
	}
	_, err := fmt.Fprintf(a.out, "url: %s\nmail: %s\n", harmlessLine(cmp.Or(n.URL, "-")), harmlessLine(cmp.Or(n.Mail, "-")))
	if n.Lost > 0 || n.Problem != "" {
		_, err = fmt.Fprintf(a.out, "lost: %d\nproblem: %s\n", n.Lost, harmlessLine(cmp.Or(n.Problem, "-")))
	}
	if n.Secret != "" {
		_, err = fmt.Fprintf(a.out, "secret: %s\n", n.Secret)
	}
	return err
}

func (a *app) notifySet(tenant *string) *cobra.Command {
	var ask api.NotifyAsk
	c := a.noun(&cobra.Command{
		Use:     "set",
		Short:   "Set where, instead of where it was; print the secret this once",
		Example: "  sublet notify set --url https://example.org/hook\n  sublet notify set --mail alice@example.org",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			n, err := a.client().SetNotify(c.Context(), vnet.TenantID(*tenant), ask)
			if err != nil {
				return err
			}
			return a.printNotify(n)
		},
	})
	c.Flags().StringVar(&ask.URL, "url", "", "where events are posted as JSON: https://HOST/PATH")
	c.Flags().StringVar(&ask.Mail, "mail", "", "address that is written to")
	return c
}

func (a *app) notifyRemove(tenant *string) *cobra.Command {
	return &cobra.Command{
		Use:     "remove",
		Short:   "Be told nowhere but by sublet events",
		Example: "  sublet notify remove",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.client().RemoveNotify(c.Context(), vnet.TenantID(*tenant)); err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.out, "told nowhere")
			return err
		},
	}
}
