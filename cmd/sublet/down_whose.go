package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sublet/trust"
	"sublet/vnet"
)

// whose are the flags of down that release leases without naming them.
type whose struct {
	all, everybody, yes bool
	tenant              vnet.TenantID // whose leases --all means
	selector            string        // by labels
}

func (w *whose) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&w.all, "all", false, "release every lease of your own")
	f.StringVar((*string)(&w.tenant), "tenant", "", "with --all: the leases of this tenant instead (for the operator)")
	f.BoolVar(&w.everybody, "all-tenants", false, "release every lease of every tenant, with --yes (for the operator)")
	selectorFlag(c, &w.selector)
	f.BoolVar(&w.yes, "yes", false, "mean it")
}

// check refuses flags that do not go together.
func (w *whose) check(names []string) error {
	if _, err := selected(nil, w.selector); err != nil {
		return err
	}
	w.all = w.all || w.selector != "" && !w.everybody
	switch {
	case (len(names) > 0) == (w.all || w.everybody):
		return errNoName
	case w.tenant != "" && (w.everybody || !w.all):
		return badInput{errors.New("--tenant says whose leases --all means: state these two")}
	case w.tenant != "" && vnet.CheckName(string(w.tenant)) != nil:
		return badInput{fmt.Errorf("--tenant: %w", vnet.CheckName(string(w.tenant)))}
	case w.everybody && !w.yes:
		return badInput{errors.New("--all-tenants releases the leases of everybody, booked ones too: add --yes if that is meant")}
	}
	return nil
}

// own fills in whose leases --all means: those of the tenant that the server
// takes this user for. A certificate stands for no tenant.
func (a *app) own(w *whose) error {
	mine := trust.TenantOf(uint32(os.Geteuid()))
	switch {
	case a.server == "" && os.Geteuid() != 0 && (w.everybody || w.tenant != "" && w.tenant != mine):
		return badInput{fmt.Errorf("leases of others are released by the operator only (root on the server's machine); %s has --all", mine)}
	case !w.all || w.tenant != "":
	case a.server != "":
		return badInput{errors.New("a certificate has no leases of its own: state --tenant, or --all-tenants --yes")}
	default:
		w.tenant = mine
	}
	return nil
}

// live are those leases of them that are not over.
func (w whose) live(leases []vnet.Lease) []vnet.Lease {
	var chosen []vnet.Lease
	for _, l := range leases {
		if l.State != vnet.Ended && (w.everybody || w.all && l.Request.Tenant == w.tenant) {
			chosen = append(chosen, l)
		}
	}
	return chosen
}

// rest says that there was nothing to release, and of whom there would be.
func (a *app) rest(w whose, leases []vnet.Lease) {
	others := len(whose{everybody: true}.live(leases))
	switch {
	case w.selector != "":
		fmt.Fprintf(a.out, "none of the leases of %s has these labels\n", w.tenant)
	case others == 0:
		fmt.Fprintln(a.out, "there are no leases")
	default:
		fmt.Fprintf(a.out, "%s has no leases; for %s of other tenants state --tenant, or --all-tenants --yes\n", w.tenant, number(others, "lease"))
	}
}
