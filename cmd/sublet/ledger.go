package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
)

func (a *app) ledger() *cobra.Command {
	var tenant, from, until string
	c := a.list(&cobra.Command{
		Use:   "ledger",
		Short: "Show all leases that ever were: who, what, when, at what cost",
		Long: `Show the ledger: one record for every lease that was ever admitted, in order of
admission. Records stay, also when a name is used again. Tenants see their own,
the operator everybody's.`,
		Example: "  sublet ledger\n  sublet ledger --tenant alice --from 2027-03-01T00:00:00Z --until 2027-04-01T00:00:00Z -o csv",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.format != "csv" {
				if err := a.checkFormat(); err != nil {
					return err
				}
			}
			q := api.LedgerQuery{Tenant: vnet.TenantID(tenant)}
			var err error
			now := time.Now().UTC()
			if q.From, err = ago("--from", from, now); err != nil {
				return err
			}
			if q.Until, err = ago("--until", until, now); err != nil {
				return err
			}
			records, err := wholeLedger(c.Context(), a.client(), q)
			if err != nil {
				return err
			}
			return a.printLedger(records)
		},
	})
	f := c.Flags()
	f.Lookup("output").Usage = "table, json, yaml or csv"
	f.StringVar(&tenant, "tenant", "", "show what this tenant has, for the operator")
	f.StringVar(&from, "from", "", "leases that had not ended before this time, such as 2027-03-01T08:00:00Z, or so long ago, such as 30d")
	f.StringVar(&until, "until", "", "leases that had begun before this time, or so long ago")
	return c
}

// ago reads a time, or how long ago it was; zero if there is none.
func ago(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := vnet.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	return moment(flag, text, now, now)
}

// wholeLedger asks for page after page.
func wholeLedger(ctx context.Context, client *api.Client, q api.LedgerQuery) ([]vnet.Record, error) {
	records := []vnet.Record{}
	for {
		page, err := client.Ledger(ctx, q)
		if err != nil {
			return nil, err
		}
		records = append(records, page.Records...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	slices.SortFunc(records, func(x, y vnet.Record) int { return cmp.Compare(x.Serial, y.Serial) })
	return records, nil
}

func (a *app) printLedger(records []vnet.Record) error {
	if a.format == "csv" {
		return a.writeCSV(records)
	}
	var rows [][]string
	for _, r := range records {
		rows = append(rows, []string{
			fmt.Sprint(r.Serial), string(r.Tenant), string(r.Network), string(r.State), when(r.Start), ledgerEnd(r),
			fmt.Sprint(r.Nodes), fmt.Sprint(r.Links), asked(r.Bandwidth), units(r.Used.Total), orDash(r.Verdict), orDash(r.Why),
		})
	}
	return a.print(records, "SERIAL TENANT NETWORK STATE FROM UNTIL NODES LINKS BANDWIDTH COST CHECKED ENDED-BECAUSE", rows)
}

// ledgerEnd is when a lease ended, or when it will.
func ledgerEnd(r vnet.Record) string {
	if !r.Ended.IsZero() {
		return when(r.Ended)
	}
	return when(r.End)
}

// writeCSV writes one line for each record; names, units and times are those
// of the JSON form.
func (a *app) writeCSV(records []vnet.Record) error {
	w := csv.NewWriter(a.out)
	lines := [][]string{{"serial", "tenant", "network", "owner_uid", "state", "admitted", "start", "end", "ran", "ended", "why",
		"nodes", "links", "cpu_milli", "memory_bytes", "bandwidth_bps", "quoted", "used_resource_seconds", "used_bandwidth_mbit", "used_kernel_seconds", "used_total", "verdict", "checked"}}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	for _, r := range records {
		lines = append(lines, []string{
			fmt.Sprint(r.Serial), string(r.Tenant), string(r.Network), fmt.Sprint(r.Owner), string(r.State),
			csvTime(r.Admitted), csvTime(r.Start), csvTime(r.End), csvTime(r.Ran), csvTime(r.Ended), r.Why,
			fmt.Sprint(r.Nodes), fmt.Sprint(r.Links), fmt.Sprint(int64(r.CPU)), fmt.Sprint(int64(r.Memory)), fmt.Sprint(int64(r.Bandwidth)),
			number(r.Quoted), number(r.Used.Resource), number(r.Used.Bandwidth), number(r.Used.Kernel), number(r.Used.Total), r.Verdict, csvTime(r.Checked),
		})
	}
	return w.WriteAll(lines)
}

func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
