package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sublet/datapath/bpf"
	"sublet/lab"
	"sublet/lab/testbed"
	"sublet/vnet"
	"sublet/vnet/topology"
)

func (a *app) lab() *cobra.Command {
	c := a.list(&cobra.Command{
		Use:   "lab",
		Short: "A substrate of namespaces on this machine, for trying out",
		Long: `A lab is a substrate made of network namespaces on this machine: each host with
an agent of its own, switches in between, wires with the stated capacity, and a
server. Without a subcommand: show the one that is up.`,
		Example: "  sublet lab up demo\n  sublet lab\n  sublet lab down",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			return a.showLab()
		},
	})
	c.AddCommand(a.labUp(), a.labDown())
	return c
}

func (a *app) showLab() error {
	status, err := lab.StatusOf(a.run)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, p := range status.Processes {
		state := "stopped"
		if p.Alive {
			state = "running"
		}
		rows = append(rows, []string{p.Name, fmt.Sprint(p.PID), state, p.Log})
	}
	for _, name := range status.Missing {
		rows = append(rows, []string{name, "-", "missing", "-"})
	}
	return a.print(status, "WHAT PID STATE LOG", rows)
}

func (a *app) labUp() *cobra.Command {
	var name, routing string
	var servers int
	var delays bool
	var images imageOptions
	c := &cobra.Command{
		Use:   "up [FILE|NAME]",
		Short: "Make a substrate of namespaces and start its server and agents",
		Long: `Make a substrate out of a file, or of a name: demo (two hosts at sites lyon and paris, one link of
2 Gbit/s), one (a single host), triangle, line:HOSTS, star:HOSTS,
fat-tree:PORTS, jellyfish:SWITCHES,PORTS,SERVERS,SEED,
waxman:HOSTS,ALPHA,BETA,SEED.

Where switches have several paths between them and FRR is installed, switches
and hosts run OSPF: nodes have loopback addresses (198.19.0.0/16) to which
switches forward over all shortest paths, and switches take off tunnel headers
that are for them, as relays of explicit multipath do: leases choose among all
paths, and their tunnels are pinned to them. Without, switches forward along one
fixed path, on which leases count.
Interfaces of ways out lead to a namespace NAME.internet that answers at
198.51.100.1.
Wires are as late as their links' latency says where the kernel has netem;
--delays has a process do it elsewhere, which costs processor time for each
packet.
--servers makes every host of the substrate, such as the nodes of a GraphML
file, a switch with that many hosts.

Without an argument: start again what ended of the lab that is up, such as a
server that was killed. Networks and leases are what they were.`,
		Example: "  sublet lab up demo\n  sublet lab up fat-tree:4\n  sublet lab up substrate.yaml\n  sublet lab up Abilene.graphml --servers 1\n  sublet lab up",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: completeSubstrate,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.labAgain(c)
			}
			if err := images.check(); err != nil {
				return err
			}
			sub, err := a.labSubstrate(args[0], servers)
			if err != nil {
				return err
			}
			m, measured := remembered(measuredFile, time.Now())
			sub = onThisMachine(sub, m, measured, runtime.NumCPU())
			ospf, err := a.speaksOSPF(routing, sub)
			if err != nil {
				return err
			}
			return a.startLab(c.Context(), lab.Spec{Name: name, Substrate: sub, OSPF: ospf, Delays: delays, Agent: images.args()})
		},
	}
	c.Flags().StringVar(&name, "name", lab.DefaultName, "name of the lab, which its namespaces' names begin with")
	c.Flags().StringVar(&routing, "routing", "auto", "routing of switches: ospf, static, or auto: ospf where there is a choice of paths")
	c.Flags().BoolVar(&delays, "delays", false, "delay wires by the latency of their links where the kernel lacks netem too")
	images.flags(c.Flags())
	c.Flags().IntVar(&servers, "servers", 0, "make every host a switch with this many hosts")
	return c
}

// speaksOSPF says whether the switches of a lab will.
func (a *app) speaksOSPF(routing string, sub vnet.Substrate) (bool, error) {
	switch {
	case routing == "static", routing == "auto" && !lab.Meshed(sub):
		return false, nil
	case routing != "auto" && routing != "ospf":
		return false, badInput{fmt.Errorf("--routing %q: choose ospf, static or auto", routing)}
	case lab.HasFRR():
		return true, asBadInput(lab.FitsOSPF(sub))
	case routing == "ospf":
		return false, badInput{errors.New(lab.NoFRR)}
	}
	fmt.Fprintf(a.err, "sublet: note: %s\n", lab.NoFRR)
	return false, nil
}

func (a *app) labSubstrate(arg string, servers int) (vnet.Substrate, error) {
	sub, err := a.readSubstrate(arg)
	if err != nil {
		return sub, err
	}
	if servers != 0 {
		if sub, err = topology.Serve(sub, servers); err != nil {
			return sub, badInput{err}
		}
	}
	return sub, asBadInput(lab.Fits(sub))
}

func (a *app) startLab(ctx context.Context, spec lab.Spec) error {
	if err := cmp.Or(a.mayLab(), bpf.Supported()); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	spec.Run, spec.Exe, spec.Ready = a.run, exe, a.agentsUp
	p := a.progress("making the lab")
	undoing := context.AfterFunc(ctx, func() {
		p.aside(func() { fmt.Fprintln(a.err, "sublet: interrupted: undoing what was made of the lab") })
		p.say("undoing")
	})
	defer undoing()
	made, err := lab.Up(ctx, spec)
	p.end()
	if err != nil {
		return err
	}
	for _, note := range made.Notes {
		fmt.Fprintf(a.err, "sublet: note: %s\n", note)
	}
	sub := spec.Substrate
	name := "lab " + spec.Name
	if spec.Name == "lab" {
		name = "the lab"
	}
	fmt.Fprintf(a.out, "%s is up: %d hosts, %d switches, %d links\n", name, len(sub.Hosts), len(sub.Switches), len(sub.Links))
	return nil
}

// labAgain starts what ended of the lab that is up.
func (a *app) labAgain(c *cobra.Command) error {
	given := false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { given = given || f.Changed })
	if given {
		return badInput{errors.New("a lab that is up stays what it is: leave the flags out, or name what to make a lab of")}
	}
	if err := a.mayLab(); err != nil {
		return err
	}
	p := a.progress("starting what ended of the lab")
	names, err := lab.Again(c.Context(), a.run, a.agentsUp)
	p.end()
	if errors.Is(err, lab.ErrNone) {
		return badInput{fmt.Errorf("%w: name what to make one of, such as `sublet lab up demo`", err)}
	}
	if err != nil {
		return err
	}
	if len(names) == 0 {
		fmt.Fprintln(a.out, "the lab is up: nothing of it had ended")
		return nil
	}
	fmt.Fprintf(a.out, "the lab is up: %s started again\n", strings.Join(names, ", "))
	return nil
}

// mayLab says whether the caller can make and unmake labs, and whether it is
// safe to believe what the run directory says.
func (a *app) mayLab() error {
	if os.Geteuid() != 0 {
		return badInput{errors.New("a lab is made of network namespaces: run it as root")}
	}
	return safeDir(a.run)
}

// agentsUp says whether the server answers and knows all its agents.
func (a *app) agentsUp(ctx context.Context) error { return testbed.AgentsUp(ctx, a.client()) }

func (a *app) labDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the lab and remove everything it made",
		Long: `End the lab and remove everything it made, with every network in it, whoever's, and
without asking: what its hosts have is what the lab is.`,
		Example: "  sublet lab down",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.mayLab(); err != nil {
				return err
			}
			p := a.progress("taking the lab away")
			err := lab.Down(a.run)
			p.end()
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, "the lab is gone")
			return nil
		},
	}
}
