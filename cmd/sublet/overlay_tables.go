package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// overlayTables are the commands for the operator's own tunnels.
func (a *app) overlayTables() []*cobra.Command {
	return []*cobra.Command{a.overlaySet(), a.overlayShow(), a.overlayEntries(plan.TableAdd), a.overlayDelete(), a.overlayEntries(plan.TableReplace)}
}

func (a *app) overlaySet() *cobra.Command {
	t := plan.TunnelTable{}
	var encapsulation, local, match, entries string
	var number uint32
	c := &cobra.Command{
		Use:   "set HOST TABLE",
		Short: "Make a table of your own tunnels, or another one of it",
		Long: `Make a table of tunnels of the operator's own on a host, whatever there was of
that name: packets that come in by a device go to the host that the table has for
some of their bits, in the encapsulation that is stated, and what those hosts send
leaves by the device. The device is one end of a pair (ip link add NAME type veth
peer name OTHER), without an address. What leases have is not touched. It lasts
until sublet overlay delete, also where the agent starts again (docs/tunnels.md).`,
		Example: "  sublet overlay set h1 sites --device front0 --encapsulation vxlan --number 5000 --interface eth0 --local 192.0.2.1 --match 0/48 --entries macs.txt\n" +
			"  sublet overlay set h1 routes --device front1 --encapsulation ipip --interface eth0 --local 192.0.2.1 --match 30/32 --longest",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) (err error) {
			t.Name, t.Encapsulation, t.Number = args[1], vnet.Encapsulation(encapsulation), vnet.VNI(number)
			if t.Local, err = netip.ParseAddr(local); err != nil {
				return badInput{fmt.Errorf("--local %q: state an address of the host", local)}
			}
			if n, err := fmt.Sscanf(match+" ", "%d/%d ", &t.Offset, &t.Bits); err != nil || n != 2 {
				return badInput{fmt.Errorf("--match %q: state the first byte of the identifier and its bits, such as 0/48", match)}
			}
			if entries != "" {
				if t.Entries, err = a.readEntries(entries); err != nil {
					return err
				}
			}
			if err := t.Check(); err != nil {
				return badInput{err}
			}
			return a.client().ChangeTable(c.Context(), vnet.HostID(args[0]), plan.TableChange{Table: t.Name, Do: plan.TableSet, Set: &t})
		},
	}
	f := c.Flags()
	f.StringVar(&t.Device, "device", "", "device by which packets come in: one end of a pair")
	f.StringVar(&encapsulation, "encapsulation", string(vnet.VXLAN), "vxlan, nsh, geneve, nvgre, gretap, kernel-vxlan (by the stack of the host); for IP packets gre, ipip, gue, lisp")
	f.Uint32Var(&number, "number", 0, "number of the tunnels, for vxlan, nsh, geneve, nvgre, lisp, kernel-vxlan: below 2^20")
	f.StringVar(&t.Interface, "interface", "", "physical interface to the other hosts")
	f.StringVar(&local, "local", "", "this host's address there")
	f.StringVar(&match, "match", "0/48", "where packets have their identifier: bytes from the start of the frame, and bits up to 128 (0/48: destination MAC, 30/32: destination of IPv4, 14/20: label of MPLS, 0/0: all packets alike)")
	f.BoolVar(&t.Longest, "longest", false, "match the longest prefix, not all bits")
	f.StringVar(&entries, "entries", "", "file with a line IDENTIFIER HOST-ADDRESS for each entry; -: standard input")
	for _, name := range []string{"device", "interface", "local"} {
		_ = c.MarkFlagRequired(name) // an error: there is no such flag
	}
	return c
}

// entriesText says how files of entries look.
const entriesText = `A line of the file is an identifier and the address of the host
that packets with it go to: "02:00:00:00:00:01 192.0.2.2". Identifiers are MAC
addresses, IP addresses and prefixes (10.1.0.0/16), hexadecimal digits with their
bits (12345/20), or default. All lines are taken, or none.`

func (a *app) overlayEntries(do plan.TableOp) *cobra.Command {
	short, long := "Add entries to a table of your own tunnels", "Add entries to a table. One whose identifier is there already is a conflict. "
	if do == plan.TableReplace {
		short = "Give a table of your own tunnels other entries"
		long = "Give a table the entries of a file and no others, at once: a packet meets the table before or after the change. "
	}
	return &cobra.Command{
		Use: string(do) + " HOST TABLE FILE", Short: short, Long: long + entriesText,
		Example:           fmt.Sprintf("  sublet overlay %s h1 sites macs.txt\n  echo 02:00:00:00:00:01 192.0.2.2 | sublet overlay %s h1 sites -", do, do),
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) error {
			entries, err := a.readEntries(args[2])
			if err != nil {
				return err
			}
			return a.client().ChangeTable(c.Context(), vnet.HostID(args[0]), plan.TableChange{Table: args[1], Do: do, Entries: entries})
		},
	}
}

func (a *app) overlayDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete HOST TABLE [FILE]",
		Short: "Delete entries of a table of your own tunnels, or all of it",
		Long: `Delete the entries of a table whose identifiers a file lists, one a line (what
follows it there does not count), or, without a file, the whole table, of which
nothing is left. One that is not there is a conflict; then nothing is deleted.`,
		Example:           "  sublet overlay delete h1 sites old.txt\n  sublet overlay delete h1 sites",
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) error {
			change := plan.TableChange{Table: args[1], Do: plan.TableRemove}
			if len(args) == 3 {
				change.Do = plan.TableDelete
				err := a.eachLine(args[2], func(words []string) (err error) {
					var id plan.Identifier
					err = id.UnmarshalText([]byte(words[0]))
					change.IDs = append(change.IDs, id)
					return err
				})
				if err != nil {
					return err
				}
			}
			return a.client().ChangeTable(c.Context(), vnet.HostID(args[0]), change)
		},
	}
}

// readEntries reads lines of identifiers and addresses.
func (a *app) readEntries(name string) (entries []plan.TunnelEntry, err error) {
	err = a.eachLine(name, func(words []string) error {
		var e plan.TunnelEntry
		if len(words) != 2 {
			return fmt.Errorf("write an identifier and an address, such as 02:00:00:00:00:01 192.0.2.2")
		}
		if err := e.ID.UnmarshalText([]byte(words[0])); err != nil {
			return err
		}
		to, err := netip.ParseAddr(words[1])
		if err != nil {
			return fmt.Errorf("%q is no address of a host", words[1])
		}
		e.To = to
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// eachLine reads the words of each line of a file but for comments, which begin with #.
func (a *app) eachLine(name string, do func(words []string) error) error {
	text, err := a.readFile(name)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	count := 0
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if count++; count > plan.MaxTunnelEntries {
			return badInput{fmt.Errorf("%s: more than %d entries", name, plan.MaxTunnelEntries)}
		}
		if err := do(words); err != nil {
			return badInput{fmt.Errorf("%s:%d: %w", name, n, err)}
		}
	}
	if err := lines.Err(); err != nil {
		return badInput{fmt.Errorf("%s: %w", name, err)}
	}
	return nil
}

func (a *app) overlayShow() *cobra.Command {
	return a.list(&cobra.Command{
		Use:   "show HOST [TABLE]",
		Short: "Show the tables of your own tunnels: entries, state, hits, drops",
		Long: `Show the tables of the operator's own tunnels on a host, each with what came in by
it, and its entries with what they sent. Entries beyond the first 2,048 of a host
share their table's counters.`,
		Example:           "  sublet overlay show h1\n  sublet overlay show h1 sites -o json",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeHost,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			tables, err := a.tablesOf(c.Context(), args)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, t := range tables {
				rows = append(rows, tableRow(t))
				for _, e := range t.Entries {
					rows = append(rows, entryRow(t, e))
				}
			}
			return a.printAll(tables, "TABLE IDENTIFIER TO STATE NEXT-HOP MTU HITS RECEIVED DROPS", rows, "no tables: sublet overlay set makes one")
		},
	})
}

func (a *app) tablesOf(ctx context.Context, args []string) ([]report.TableState, error) {
	tables, err := a.client().Tables(ctx, vnet.HostID(args[0]))
	if err != nil || len(args) < 2 {
		return tables, err
	}
	for _, t := range tables {
		if t.Name == args[1] {
			return []report.TableState{t}, nil
		}
	}
	return nil, badInput{fmt.Errorf("host %s has no table %q: sublet overlay show %s lists them", args[0], args[1], args[0])}
}

func tableRow(t report.TableState) []string {
	match := fmt.Sprintf("bytes %d, bits %d", t.Offset, t.Bits)
	if t.Longest {
		match += ", longest"
	}
	by := string(t.Encapsulation)
	if t.Number != 0 {
		by += fmt.Sprintf(" %d", t.Number)
	}
	return []string{t.Name, match, by + " by " + t.Interface, stateText(t.State, t.Reason), "-", "-", "-", fmt.Sprint(t.Received), dropsText(t.Drops)}
}

func entryRow(t report.TableState, e report.EntryState) []string {
	return []string{
		t.Name, e.ID.String(), e.To.String(), stateText(e.State, e.Reason), cmp.Or(e.NextHop, "-"),
		fmt.Sprint(e.PathMTU), fmt.Sprint(e.Hits), "-", dropsText(e.Drops),
	}
}

// stateText is a state with its reason.
func stateText(state, reason string) string {
	if reason == "" {
		return state
	}
	return state + " (" + reason + ")"
}
