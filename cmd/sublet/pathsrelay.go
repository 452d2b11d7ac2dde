package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"sublet/datapath/iplb"
	"sublet/datapath/kernel"
	"sublet/vnet"
)

// pathsPlace says which host, and where its namespace is.
type pathsPlace struct {
	host, namespace string
}

func (p *pathsPlace) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.host, "host", "", "name of this host or switch")
	c.Flags().StringVar(&p.namespace, "netns", "", "file of its network namespace (default: the caller's)")
}

func (a *app) openPlace(p pathsPlace) (*kernel.Host, error) {
	if err := vnet.CheckName(p.host); err != nil {
		return nil, badInput{fmt.Errorf("--host: %w", err)}
	}
	if os.Geteuid() != 0 {
		return nil, badInput{fmt.Errorf("programs in the kernel need root")}
	}
	if err := os.MkdirAll(a.run, 0o755); err != nil {
		return nil, err
	}
	if err := safeDir(a.run); err != nil {
		return nil, err
	}
	h, err := kernel.NewHost(kernel.Config{Host: p.host, Run: a.run, Namespace: p.namespace})
	if os.IsNotExist(err) {
		return nil, badInput{err}
	}
	return h, err
}

// relayRun is what `paths relay` was asked for.
type relayRun struct {
	pathsPlace
	devices, addresses, senders, inside []string
	off, show                           bool
	shortcut                            string
}

func (a *app) pathsRelay() *cobra.Command {
	var r relayRun
	c := a.noun(&cobra.Command{
		Use:   "relay --host NAME --device DEVICE --sender PREFIX --inside PREFIX",
		Short: "Take tunnel headers off on this node",
		Long: `Take tunnel headers off, in the kernel, of packets that come by some devices and
are for this node's addresses; what was inside goes on by the kernel's
forwarding. It stays when the command is done; --off ends it. A kernel with
tunnel devices of its own needs none of this.`,
		Example: "  sublet paths relay --host s1 --device all --sender 10.0.0.0/8 --inside 10.0.0.0/8\n  sublet paths relay --host s1 --show\n  sublet paths relay --host s1 --off",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.relay(r) },
	})
	r.flags(c)
	f := c.Flags()
	f.StringArrayVar(&r.devices, "device", nil, "from the fabric; all is every device but lo; may be repeated")
	f.StringArrayVar(&r.addresses, "address", nil, "at which headers are taken off (default: all IPv4 addresses); may be repeated")
	f.StringArrayVar(&r.senders, "sender", nil, "prefix that outer headers may come from; may be repeated")
	f.StringArrayVar(&r.inside, "inside", nil, "prefix where packets may go without their headers; may be repeated")
	f.StringVar(&r.shortcut, "shortcut", "free", "when packets go to their next hops past the kernel's stack, which is faster: free (where no netfilter, IPsec, reverse-path filter or bridge would see them), always or never")
	f.BoolVar(&r.off, "off", false, "end it")
	f.BoolVar(&r.show, "show", false, "show what became of packets: relayed, forwarded past the stack, or dropped and why")
	return c
}

func (a *app) relay(r relayRun) error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	if r.off && r.show {
		return badInput{errors.New("--off and --show: say one of them")}
	}
	if !r.off && !r.show && (len(r.senders) == 0 || len(r.inside) == 0 || len(r.devices) == 0) {
		return errNoSender
	}
	relaying, err := r.relaying()
	if err != nil {
		return err
	}
	h, err := a.openPlace(r.pathsPlace)
	if err != nil {
		return err
	}
	defer h.Close()
	if r.off {
		return iplb.UnpinRelay(h)
	}
	if r.show {
		return a.showRelay(h)
	}
	return r.start(h, relaying)
}

func (r relayRun) relaying() (iplb.Relaying, error) {
	senders, err := parsePrefixes("--sender", r.senders)
	if err != nil {
		return iplb.Relaying{}, err
	}
	inside, err := parsePrefixes("--inside", r.inside)
	if err != nil {
		return iplb.Relaying{}, err
	}
	shortcut := slices.Index(iplb.Shortcuts(), r.shortcut)
	if shortcut < 0 {
		return iplb.Relaying{}, badInput{fmt.Errorf("--shortcut %q: say free, always or never", r.shortcut)}
	}
	relaying := iplb.Relaying{Senders: senders, Inside: inside, Shortcut: iplb.Shortcut(shortcut)}
	for _, word := range r.addresses {
		address, err := parseIP4("--address", word)
		if err != nil {
			return relaying, err
		}
		relaying.Addresses = append(relaying.Addresses, address)
	}
	return relaying, nil
}

func (r relayRun) start(h *kernel.Host, relaying iplb.Relaying) error {
	devices, addresses, err := iplb.Devices(h)
	if err != nil {
		return err
	}
	if relaying.Addresses == nil {
		relaying.Addresses = addresses
	}
	if len(r.devices) != 1 || r.devices[0] != "all" {
		if i := slices.IndexFunc(r.devices, func(d string) bool { return !slices.Contains(devices, d) }); i >= 0 {
			return badInput{fmt.Errorf("--device %s: name a device of ip link, not lo", r.devices[i])}
		}
		devices = r.devices
	}
	t, err := iplb.Open(h, netip.IPv4Unspecified())
	if err != nil {
		return err
	}
	defer t.Close()
	err = t.SetRelaying(relaying)
	for _, device := range devices {
		err = cmp.Or(err, t.TakeOff(h, device))
	}
	return err
}

// relayCounts is what a relay did to packets since it began.
type relayCounts struct {
	Host     string            `json:"host"`
	Outcomes map[string]uint64 `json:"outcomes"`
}

func (a *app) showRelay(h *kernel.Host) error {
	counts, err := iplb.CountsOf(h)
	if errors.Is(err, os.ErrNotExist) {
		return badInput{fmt.Errorf("--host %s: it takes no headers off below %s: say --device, --sender and --inside", h.Host, a.run)}
	}
	if err != nil {
		return err
	}
	var rows [][]string
	for _, what := range iplb.Outcomes() {
		rows = append(rows, []string{what, fmt.Sprint(counts[what])})
	}
	return a.print(relayCounts{h.Host, counts}, "OUTCOME PACKETS", rows)
}
