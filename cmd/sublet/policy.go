package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/lease/policy"
	"sublet/vnet"
	"sublet/vnet/file"
)

func (a *app) policy() *cobra.Command {
	var tenant string
	var all bool
	c := a.list(&cobra.Command{
		Use:   "policy",
		Short: "Show what you may lease, and how much of it you use",
		Long: `Show the limits that the operator's policy sets you, what you use of them now,
and the most that is booked for any instant from now on.`,
		Example: "  sublet policy\n  sublet policy -o json\n  sublet policy --all",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			views, err := a.client().Policy(c.Context(), vnet.TenantID(tenant), all)
			if err != nil {
				return err
			}
			return a.printPolicy(views)
		},
	})
	c.Flags().StringVar(&tenant, "tenant", "", "show what this tenant has, for the operator")
	c.Flags().BoolVar(&all, "all", false, "show everybody who has leases or whom the policy names, for the operator")
	c.MarkFlagsMutuallyExclusive("tenant", "all")
	return c
}

func (a *app) printPolicy(views []api.PolicyView) error {
	var rows [][]string
	for _, v := range views {
		if v.Refused {
			rows = append(rows, []string{string(v.Tenant), "-", "leases", "0", "-", "-"})
			continue
		}
		for _, account := range v.Accounts {
			rows = append(rows, quotaRows(v.Tenant, account)...)
		}
	}
	return a.print(views, "TENANT OF QUOTA LIMIT USED-NOW BOOKED-PEAK", rows)
}

// quotaRows are the limits of one account and what is used without a limit.
func quotaRows(tenant vnet.TenantID, u policy.Usage) (rows [][]string) {
	for _, name := range vnet.QuotaNames {
		limit, limited := u.Quota[name]
		if !limited {
			limit = vnet.Unlimited
		}
		_, counted := u.Now[name]
		if limited || counted && u.Peak[name] > 0 {
			rows = append(rows, []string{string(tenant), u.Name, name.Word(), name.Format(limit), usedOf(name, u.Now), usedOf(name, u.Peak)})
		}
	}
	return rows
}

func usedOf(name vnet.QuotaName, used vnet.Quota) string {
	amount, ok := used[name]
	switch {
	case !ok:
		return "-"
	case amount == vnet.Unlimited:
		return "no end"
	}
	return name.Format(amount)
}

// readPolicy reads an operator's policy from a file that nobody else can change.
func (a *app) readPolicy(name string) (vnet.Policy, error) {
	if err := safeDir(name); err != nil {
		return vnet.Policy{}, fmt.Errorf("whoever can change a policy sets quotas: %w", err)
	}
	text, err := a.readFile(name)
	if err != nil {
		return vnet.Policy{}, err
	}
	return file.ParsePolicy(name, text)
}

// policyEvery is how often a policy file is looked at.
const policyEvery = 2 * time.Second

// followPolicy reads a policy file again when it is another than the one seen,
// and on SIGHUP. A bad one changes nothing and is logged.
func (a *app) followPolicy(ctx context.Context, name, seen string, log *slog.Logger, set func(vnet.Policy) error) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ticker := time.NewTicker(policyEvery)
	defer ticker.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			asked = true
		case <-ticker.C:
		}
		now := fileVersion(name)
		if !asked && now == seen {
			continue
		}
		seen = now
		p, err := a.readPolicy(name)
		if err == nil {
			err = set(p)
		}
		if err != nil {
			log.Error("the policy in force stays", slog.String("file", name), slog.String("because", oneLine(err)))
			continue
		}
		log.Info("policy read", slog.String("file", name))
	}
}

// fileVersion tells versions of a file apart.
func fileVersion(name string) string {
	status, err := os.Stat(name)
	if err != nil {
		return ""
	}
	inode := uint64(0)
	if s, ok := status.Sys().(*syscall.Stat_t); ok {
		inode = s.Ino
	}
	return fmt.Sprint(inode, status.Size(), status.ModTime().UnixNano())
}
