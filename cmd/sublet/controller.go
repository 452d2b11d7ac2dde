package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/openflow/controller"
	"sublet/openflow/secure"
)

// controllerFlags are what is typed of a controller.
type controllerFlags struct {
	listen   string
	connect  []string
	apps     []string
	topology string
	routers  string
	leases   bool
	network  *controller.Network // of --app paths
	role     string
	tls      secure.Files
	level    slog.Level
}

func (a *app) controller() *cobra.Command {
	var f controllerFlags
	c := &cobra.Command{
		Use:   "controller",
		Short: "Control OpenFlow switches, without a lease",
		Long: `Control switches of OpenFlow 1.3 and 1.0 in the foreground, until interrupted: those
that connect to --listen, and those to which --connect leads. They may be those of
sublet openflow run, Open vSwitch, Mininet or others.

--app learning makes each a learning switch: packets between addresses that were
seen go their way by entries of the switch, which end after a minute without
packets; others go to all ports.

--app paths discovers links by LLDP, learns where stations are, and makes shortest
paths between them, also where links form rings. Every entry is read back before
its path counts, and put right when it is lost or altered. --app learning,paths
leaves switches without links to others to the former.

--topology keeps what was discovered in a file, as a substrate. --vxrouters gives
switches virtual routers and links of a file (docs/controllers.md): entries inside
a subset of ports, and a meter or queue that all packets of a link pass.

--leases has paths lead over links of which leases have booked less: a link that
is booked in full costs as much as ten that are free. The server is asked every
2 s; its substrate says which ports of which switches links are.

--role has one of several controllers of the same switches be their master, as a
file says, which is read again and again: "master 7" or "slave 7", where 7 is the
generation. Who decides, such as keepalived or a lock in etcd, writes a larger
generation into the file of each next master.

With --cert, --key and --ca all connections are over TLS, and a switch needs a
certificate that an authority of --ca has signed, whatever name is in it. The
files are read anew for each connection. Without them let only switches reach
the address.`,
		Example: "  sublet controller --listen 127.0.0.1:6653 --app learning\n" +
			"  sublet controller --connect tcp:192.0.2.1:6653,tcp:192.0.2.2:6653 --app learning,paths --topology topology.yaml",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config(a.log(f.level), c.Flags().Changed("listen"))
			if err != nil {
				return badInput{err}
			}
			served, err := controller.New(config)
			if err != nil {
				return badInput{fmt.Errorf("--listen: %w", err)}
			}
			if f.leases {
				go followPrices(c.Context(), a.client(), config.Log, f.network.SetPrices)
			}
			if config.Listen.IsValid() {
				fmt.Fprintf(a.err, "sublet: controller at %s\n", served.Address())
			}
			return served.Run(c.Context())
		},
	}
	f.define(c)
	return c
}

func (f *controllerFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:6653", "HOST:PORT where switches connect; an empty host is all addresses, port 0 any that is free; with --connect: nowhere, unless it is stated")
	flags.StringSliceVar(&f.connect, "connect", nil, "switches that listen, by commas: tcp:HOST:PORT")
	flags.StringSliceVar(&f.apps, "app", []string{"learning"}, "what it does with switches, by commas: learning, paths")
	flags.StringVar(&f.topology, "topology", "", "file that is kept as what paths discovers, a substrate; it is written when a station is known")
	flags.StringVar(&f.routers, "vxrouters", "", "file of virtual routers and links that switches get, beside --app paths")
	flags.BoolVar(&f.leases, "leases", false, "with --app paths: ask the server what leases book of the links of its substrate, and lead paths around those that are full")
	flags.StringVar(&f.role, "role", "", "file that says whether this controller is master or slave, and the generation: \"master 7\"")
	flags.StringVar(&f.tls.Certificate, "cert", "", "certificate of the controller, for TLS: a PEM file")
	flags.StringVar(&f.tls.Key, "key", "", "key of --cert, a PEM file")
	flags.StringVar(&f.tls.CA, "ca", "", "certificates of authorities, one of which has signed those of switches: a PEM file")
	logLevel(flags, &f.level)
}

// config checks what was typed.
func (f *controllerFlags) config(log *slog.Logger, listen bool) (c controller.Config, err error) {
	c.Log = log
	for _, text := range f.connect {
		address, ok := strings.CutPrefix(text, "tcp:")
		if !ok {
			return c, fmt.Errorf("--connect %q: write tcp:HOST:PORT, such as tcp:192.0.2.1:6653", text)
		}
		at, err := resolve("--connect", address)
		if err != nil {
			return c, err
		}
		c.Connect = append(c.Connect, at)
	}
	if listen || len(f.connect) == 0 {
		if c.Listen, err = resolve("--listen", f.listen); err != nil {
			return c, err
		}
	}
	if f.role != "" {
		if c.Role, err = roleOf(f.role, log); err != nil {
			return c, err
		}
	}
	if c.TLS, err = f.secure(); err != nil {
		return c, err
	}
	err = f.apply(&c)
	return c, err
}

// secure is nil where connections are plain. Files that cannot be read are refused at
// once.
func (f *controllerFlags) secure() (*secure.Files, error) {
	if f.tls == (secure.Files{}) {
		return nil, nil
	}
	if f.tls.Certificate == "" || f.tls.Key == "" || f.tls.CA == "" {
		return nil, errors.New("TLS needs --cert, --key and --ca: state all three, or none")
	}
	_, err := f.tls.Config()
	return &f.tls, err
}

// apply sets what the controller does with switches.
func (f *controllerFlags) apply(c *controller.Config) error {
	for _, name := range f.apps {
		if name != "learning" && name != "paths" {
			return fmt.Errorf("--app %q: there are learning, paths, and learning,paths", name)
		}
	}
	learning, paths := slices.Contains(f.apps, "learning"), slices.Contains(f.apps, "paths")
	switch {
	case !learning && !paths:
		return errors.New("--app: state learning, paths, or learning,paths")
	case f.topology != "" && !paths:
		return errors.New("--topology: only --app paths discovers one: state --app learning,paths")
	case f.routers != "" && !paths:
		return errors.New("--vxrouters: it goes with --app paths: state --app paths")
	case f.leases && !paths:
		return errors.New("--leases: it goes with --app paths: state --app paths")
	case !paths:
		c.App = controller.NewLearning
		return nil
	}
	n := controller.NewNetwork(c.Log)
	f.network = n
	if c.App, c.Tick = n.App, n.Tick; learning {
		n.Alone = controller.NewLearning
	}
	if f.routers != "" {
		var err error
		if n.Slices, err = readVxRouters(f.routers); err != nil {
			return err
		}
	}
	if f.topology != "" {
		if info, err := os.Stat(filepath.Dir(f.topology)); err != nil || !info.IsDir() {
			return fmt.Errorf("--topology %s: there is no directory %s: make it first", f.topology, filepath.Dir(f.topology))
		}
		n.Topology = writeTopology(f.topology, c.Log)
	}
	return nil
}

// resolve reads HOST:PORT of a flag.
func resolve(flag, text string) (netip.AddrPort, error) {
	at, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return netip.AddrPort{}, badInput{fmt.Errorf("%s %s: %w: write HOST:PORT, such as 127.0.0.1:6653", flag, text, err)}
	}
	address, ok := netip.AddrFromSlice(at.IP)
	if !ok {
		address = netip.IPv6Unspecified()
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(at.Port)), nil
}
