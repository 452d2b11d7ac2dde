// Sublet leases virtual networks with guaranteed bandwidth on shared Linux
// machines. One program: noun commands read, verb commands write.
//
// This folder is the only place where the rooms of the house meet: every file
// is one command, which joins routes of the API to what people type and see.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sublet/datapath/impair"
	"sublet/datapath/join"
	"sublet/datapath/vnode"
	"sublet/lab"
	"sublet/lease/api"
	"sublet/measure/probe"
	"sublet/vnet"
)

func main() {
	// The same program runs inside virtual nodes: as the first process of a
	// session, and as a sender and receiver of measurements.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case vnode.InitCommand:
			os.Exit(vnode.Main(os.Args[2:]))
		case join.Command:
			os.Exit(join.Main())
		case impair.Command:
			os.Exit(impair.Main(os.Args[2:]))
		case lab.WiresCommand:
			os.Exit(lab.WiresMain(os.Args[2:]))
		case probeCommand:
			os.Exit(probe.Main(os.Stdin, os.Stdout))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// probeCommand is how an agent starts a probe inside a node.
const probeCommand = "__probe"

// defaultRun is the run directory of a machine's own server and agent.
const defaultRun = "/run/sublet"

// app is what the commands share: where the server is and where output goes.
type app struct {
	args   []string // as they were typed
	run    string   // directory of sockets and namespaces
	format string   // of noun commands: table, json, yaml

	server string // on another machine; "" is the one of the run directory
	tls    credentials
	caller *api.Client

	in       io.Reader
	out, err io.Writer

	sources map[vnet.VNetID]source // of the requests that were read
}

// run is the whole program as a function: arguments and streams in, exit code out.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	a := &app{args: args, in: in, out: out, err: errw}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if signalled := interruption(ctx, err); signalled != 0 {
		code = signalled
	}
	a.tellError(err, code)
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sublet",
		Short: "Lease virtual networks with guaranteed bandwidth on shared Linux machines",
		Long: `Sublet leases virtual networks with guaranteed bandwidth on shared Linux machines.

A request (YAML or VXDL) is admitted against a calendar or refused with an offer
that would be accepted; admitted, it is built, kept and measured.

Exit codes: 0 done, 1 failed, 2 bad input (nothing changed), 3 refused by
admission, 4 a promise is not kept (check), 5 conflict with what is there already
or with another's change (nothing changed), 130 interrupted, 143 terminated.

With -o json an error is a JSON object on the standard error.

Environment, where no flag says otherwise: SUBLET_RUN (--run), SUBLET_SERVER
(--server), SUBLET_CERT, SUBLET_KEY, SUBLET_CA, SUBLET_TOKEN and
SUBLET_TOKEN_FILE.`,
		Example:       "  sublet lab up demo\n  sublet up examples/hello.yaml\n  sublet check hello\n  sublet down hello\n  sublet lab down",
		Version:       versionOf(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().StringVar(&a.run, "run", environment("SUBLET_RUN", defaultRun), "directory of the server's socket and of what runs ($SUBLET_RUN)")
	a.remoteFlags(root)
	root.SetFlagErrorFunc(a.wrongFlag)
	root.AddCommand(
		a.serve(), a.agent(), a.lab(),
		a.up(), a.apply(), a.renew(), a.stage(), a.clone(), a.save(), a.pause(), a.resume(), a.down(), a.createCommand(),
		a.leases(), a.plan(), a.hosts(), a.links(), a.policy(), a.ledger(), a.overlay(), a.watch(), a.events(), a.notify(), a.proof(), a.top(), a.wait(), a.calibrate(), a.profile(),
		a.offers(), a.calendar(),
		a.page(), a.token(),
		a.fail(), a.restore(), a.formerRestore(), a.substrate(), a.drain(), a.undrain(), a.consolidate(), a.maintenance(), a.servers(),
		a.exec(), a.attach(), a.ps(), a.logs(), a.cp(), a.capture(), a.impair(), a.join(), a.flows(), a.chains(), a.link(), a.check(),
		a.doctor(), a.importing(), a.get(), a.convert(), a.graph(), a.bench(), a.sim(), a.vxswitch(), a.openflow(), a.controller(), a.paths(),
		a.man(), a.versionCommand(),
	)
	root.SetUsageTemplate(root.UsageTemplate() + exitCodesTemplate)
	usageIsBadInput(root)
	durationsWithDays(root)
	return root
}

// exitCodesTemplate ends the help of commands that do something; the root's says more.
const exitCodesTemplate = `{{if not .HasAvailableSubCommands}}
Exit codes: 0 done, 1 failed, 2 bad input, 3 refused, 4 promise not kept, 5 conflict.
{{end}}`

// usageIsBadInput makes wrong arguments exit 2 in every command.
func usageIsBadInput(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err != nil && c.HasSubCommands() && len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			if err != nil {
				return usage(c, wrongNumber(c, args, err))
			}
			return nil
		}
	}
	for _, child := range c.Commands() {
		usageIsBadInput(child)
	}
}

// wrongNumber says which arguments are missing, where cobra only counts them.
func wrongNumber(c *cobra.Command, args []string, err error) error {
	if !strings.Contains(err.Error(), "arg(s)") {
		return err
	}
	use := strings.Fields(strings.TrimSuffix(c.UseLine(), " [flags]"))
	wanted := slices.DeleteFunc(strings.Fields(c.Use)[1:], func(word string) bool { return strings.HasPrefix(word, "[") || strings.HasSuffix(word, "]") })
	if len(args) >= len(wanted) {
		return fmt.Errorf("%s is too much: write %s", number(len(args), "argument"), strings.Join(use, " "))
	}
	return fmt.Errorf("%s is missing: write %s", strings.Join(wanted[len(args):], " and "), strings.Join(use, " "))
}

// wrongFlag says which flag is wrong; of a command that is none its flags are not
// what is wrong.
func (a *app) wrongFlag(c *cobra.Command, err error) error {
	if c.Flags().Lookup("output") != nil && asksForJSON(a.args) { // flags behind the wrong one were not read
		a.format = "json"
	}
	if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
		return unknownCommand(c, words[0])
	}
	return usage(c, flagError(c, err))
}

// asksForJSON looks for -o json in a line that could not be read.
func asksForJSON(args []string) bool {
	for i, word := range args {
		switch word {
		case "-ojson", "-o=json", "--output=json":
			return true
		case "-o", "--output":
			return i+1 < len(args) && args[i+1] == "json"
		}
	}
	return false
}

// unknownCommand says which command may have been meant.
func unknownCommand(c *cobra.Command, word string) error {
	var names []string
	for _, child := range c.Commands() {
		if !child.Hidden {
			names = append(names, child.Name())
		}
	}
	if near := vnet.Nearest(word, names); near != "" {
		return badInput{fmt.Errorf("unknown command %q: did you mean %q?", word, c.CommandPath()+" "+near)}
	}
	return badInput{fmt.Errorf("unknown command %q: see %s --help", word, c.CommandPath())}
}

// usage is the error of a command that was not called as its help says.
func usage(c *cobra.Command, err error) error {
	return badInput{fmt.Errorf("%w: see %s --help", err, c.CommandPath())}
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
