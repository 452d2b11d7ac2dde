package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sublet/agent/iplbd"
)

func (a *app) paths() *cobra.Command {
	var host string
	c := a.list(&cobra.Command{
		Use:   "paths",
		Short: "Show the paths hosts spread their packets over",
		Long: `Show, for each host of this machine that runs paths, the prefixes and the relay
lists of their paths: health as probes find it, flows, packets and bytes, and
the last moves of flows. See docs/multipath.md.`,
		Example: "  sublet paths\n  sublet paths --host h1 -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			return a.showPaths(c.Context(), host)
		},
	})
	c.Flags().StringVar(&host, "host", "", "show this host only")
	c.AddCommand(append(a.pathsOrders(), a.pathsRun(), a.pathsRelay())...)
	return c
}

const agentSuffix = "@agent.sock"

func (a *app) showPaths(ctx context.Context, host string) error {
	sockets, err := filepath.Glob(iplbd.Socket(a.run, "*"))
	if err != nil {
		return err
	}
	if host != "" {
		own := []string{iplbd.Socket(a.run, host), iplbd.AgentSocket(a.run, host)}
		sockets = slices.DeleteFunc(sockets, func(s string) bool { return !slices.Contains(own, s) })
	}
	answered := host == ""
	all := []iplbd.Status{}
	for _, socket := range sockets {
		s, err := iplbd.Fetch(ctx, socket)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // left by one that was killed
		}
		if err != nil {
			return err
		}
		answered = true
		if len(s.Prefixes) > 0 || !strings.HasSuffix(socket, agentSuffix) {
			all = append(all, s)
		}
	}
	if !answered {
		return badInput{fmt.Errorf("--host %s: it runs no paths below %s: start them with sublet paths run", host, a.run)}
	}
	return a.printAll(all, "HOST PREFIX MODE BY RELAYS WEIGHT HEALTH RTT FLOWS PACKETS BYTES LEASE", pathRows(all),
		"no host of this machine spreads packets over paths: see sublet paths run")
}

// pathRows is the table: paths, and below them the last moves.
func pathRows(all []iplbd.Status) [][]string {
	var rows [][]string
	for _, s := range all {
		for _, p := range s.Prefixes {
			for _, path := range p.Paths {
				rtt := "-"
				if path.RTT > 0 {
					rtt = path.RTT.Round(time.Microsecond).String()
				}
				rows = append(rows, []string{
					s.Host, prefixText(p), string(p.Mode), string(p.By), relaysText(path.Relays), fmt.Sprint(path.Weight), string(path.Health), rtt,
					fmt.Sprint(path.Flows), fmt.Sprint(path.Packets), fmt.Sprint(path.Bytes), orDash(path.Lease),
				})
			}
		}
	}
	for _, s := range all {
		for _, m := range s.Moves {
			rows = append(rows, []string{s.Host, m.Prefix.String(), m.Why, "-", relaysText(m.From) + ">" + relaysText(m.To), "-", m.At.Format("15:04:05.000"), "-", orDash(m.Flow), "-", "-", "-"})
		}
	}
	return rows
}

// prefixText is a prefix, or a tunnel's target and number.
func prefixText(p iplbd.PrefixStatus) string {
	if p.VNI != 0 {
		return fmt.Sprintf("%s#%d", p.Prefix.Addr(), p.VNI)
	}
	return p.Prefix.String()
}

// relaysText is "10.255.0.1,10.255.0.2"; "-" is the fabric's own way.
func relaysText(relays []netip.Addr) string {
	var words []string
	for _, r := range relays {
		words = append(words, r.String())
	}
	return orDash(strings.Join(words, ","))
}

// parseIP4 reads an address of a flag.
func parseIP4(flag, word string) (netip.Addr, error) {
	address, err := netip.ParseAddr(word)
	if err != nil || !address.Is4() {
		return address, badInput{fmt.Errorf("%s %q: state an IPv4 address", flag, word)}
	}
	return address, nil
}

// parsePrefixes reads prefixes of a flag.
func parsePrefixes(flag string, words []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, w := range words {
		p, err := netip.ParsePrefix(w)
		if err != nil || !p.Addr().Is4() {
			return nil, badInput{fmt.Errorf("%s %q: state an IPv4 prefix, such as 10.0.0.0/8", flag, w)}
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// errNoSender is what relay says without its walls.
var errNoSender = badInput{errors.New("state with --sender which addresses outer headers may come from, and with --inside where packets may go: 10.0.0.0/8, if that is all of the fabric")}
