package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"sublet/datapath/ofswitch"
	"sublet/openflow/channel"
	"sublet/openflow/pipeline"
)

// openflow is the command of OpenFlow switches without a lease.
func (a *app) openflow() *cobra.Command {
	c := &cobra.Command{
		Use:     "openflow",
		Short:   "Run an OpenFlow 1.3 switch",
		Long:    "Run an OpenFlow 1.3 switch on devices of this machine, without a lease. datapath/ofswitch/README.md explains it.",
		Example: "  sublet openflow run --controller tcp:192.0.2.1:6653 --dpid 1 --ports eth1,eth2",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.openflowRun())
	return c
}

// openflowFlags is what is typed of a switch.
type openflowFlags struct {
	controllers, ports []string
	dpid, datapath     string
	fail               string
	cert, key, ca      string
	tables, entries    int
	groups, meters     int
}

func (a *app) openflowRun() *cobra.Command {
	var f openflowFlags
	c := &cobra.Command{
		Use: "run", Short: "Connect devices by an OpenFlow 1.3 switch until it is stopped", Args: cobra.NoArgs,
		Long: "Connect devices by an OpenFlow 1.3 switch until it is stopped. It runs in the foreground, in one thread. " +
			"The devices' port numbers are 1, 2, ... in the order of --ports. A controller is tcp:HOST:PORT or tls:HOST:PORT, to which the switch connects, or ptcp:[HOST]:PORT or ptls:[HOST]:PORT, where it listens.",
		Example: "  sublet openflow run --controller tcp:192.0.2.1:6653 --dpid 00000000000000a1 --ports eth1,eth2\n" +
			"  sublet openflow run --controller ptcp:127.0.0.1:6654 --dpid 1 --ports veth0,veth1 --fail standalone",
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config()
			if err != nil {
				return badInput{err}
			}
			config.Log = func(err error) { fmt.Fprintf(a.err, "sublet: %v\n", err) }
			s, err := ofswitch.New(config)
			if err != nil {
				return err
			}
			defer s.Close()
			fmt.Fprintf(a.err, "sublet: OpenFlow switch %016x of %d ports\n", config.Pipeline.DatapathID, len(config.Ports))
			return s.Run(c.Context())
		},
	}
	f.define(c)
	return c
}

func (f *openflowFlags) define(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.controllers, "controller", nil, "controllers, by commas: tcp:HOST:PORT, tls:HOST:PORT, ptcp:[HOST]:PORT, ptls:[HOST]:PORT")
	flags.StringSliceVar(&f.ports, "ports", nil, "devices, by commas, that are ports 1, 2, ...")
	flags.StringVar(&f.dpid, "dpid", "", "datapath identifier: up to 16 hexadecimal digits")
	flags.StringVar(&f.datapath, "datapath", "process", "what forwards: process")
	flags.StringVar(&f.fail, "fail", "secure", "without a controller: secure (entries stay, others are not forwarded) or standalone (a learning switch)")
	flags.IntVar(&f.tables, "tables", 254, "flow tables, 1 to 254")
	flags.IntVar(&f.entries, "entries", 1_000_000, "most entries in all tables together")
	flags.IntVar(&f.groups, "groups", 65536, "most groups")
	flags.IntVar(&f.meters, "meters", 65536, "most meters")
	flags.StringVar(&f.cert, "cert", "", "certificate for TLS, a PEM file")
	flags.StringVar(&f.key, "key", "", "key of --cert, a PEM file")
	flags.StringVar(&f.ca, "ca", "", "certificates of those who may sign the controller's, a PEM file")
	for _, name := range []string{"controller", "dpid", "ports"} {
		c.MarkFlagRequired(name)
	}
}

// config checks what was typed.
func (f *openflowFlags) config() (c ofswitch.Config, err error) {
	c = ofswitch.Config{Ports: f.ports, Standalone: f.fail == "standalone"}
	c.Pipeline = pipeline.Config{Tables: f.tables, Entries: f.entries, Groups: f.groups, Meters: f.meters}
	if c.Pipeline.DatapathID, err = strconv.ParseUint(f.dpid, 16, 64); err != nil {
		return c, fmt.Errorf("--dpid %q: write up to 16 hexadecimal digits", f.dpid)
	}
	switch {
	case f.datapath != "process":
		return c, fmt.Errorf("--datapath %q: write process", f.datapath)
	case f.fail != "secure" && f.fail != "standalone":
		return c, fmt.Errorf("--fail %q: write secure or standalone", f.fail)
	case f.tables < 1 || f.tables > 254:
		return c, fmt.Errorf("--tables %d: write 1 to 254", f.tables)
	case f.entries < 1 || f.groups < 0 || f.meters < 0:
		return c, errors.New("--entries, --groups and --meters are not negative, and there is at least one entry")
	}
	return c, f.targets(&c)
}

func (f *openflowFlags) targets(c *ofswitch.Config) error {
	seen := make(map[string]bool)
	for _, name := range f.ports {
		if seen[name] {
			return fmt.Errorf("--ports: %q is there twice", name)
		}
		seen[name] = true
	}
	for _, text := range f.controllers {
		t, err := channel.ParseTarget(text)
		if err != nil {
			return err
		}
		if t.Secure && c.TLS == nil {
			if c.TLS, err = f.tls(); err != nil {
				return err
			}
		}
		c.Controllers = append(c.Controllers, t)
	}
	return nil
}

// tls is the configuration of both ends: a controller must have a certificate too.
func (f *openflowFlags) tls() (*tls.Config, error) {
	if f.cert == "" || f.key == "" || f.ca == "" {
		return nil, errors.New("controllers over TLS need --cert, --key and --ca")
	}
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca %s: no certificate in it", f.ca)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}
