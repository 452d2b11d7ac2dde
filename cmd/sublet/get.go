package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/vnet"
	"sublet/vnet/clab"
	"sublet/vnet/file"
	"sublet/vnet/graph"
	"sublet/vnet/vxdl"
)

// languages in which a leased network can be written.
var languages = map[string]func(vnet.Lease, *translation) ([]byte, []vnet.Note, error){
	"yaml": func(l vnet.Lease, _ *translation) ([]byte, []vnet.Note, error) {
		text, err := file.FormatRequest(again(l.Request, time.Now()))
		return text, nil, err
	},
	"vxdl": func(l vnet.Lease, _ *translation) ([]byte, []vnet.Note, error) {
		text, notes := vxdl.Format(again(l.Request, time.Now()))
		return text, notes, nil
	},
	"clab": func(l vnet.Lease, t *translation) (text []byte, notes []vnet.Note, err error) {
		text, t.files, notes = clab.Format(again(l.Request, time.Now()), t.beside())
		return text, notes, nil
	},
	"ansible": func(l vnet.Lease, _ *translation) ([]byte, []vnet.Note, error) { return formatInventory(l) },
	"dot":     func(l vnet.Lease, _ *translation) ([]byte, []vnet.Note, error) { return []byte(graph.DOT(l)), nil, nil },
	"mermaid": func(l vnet.Lease, _ *translation) ([]byte, []vnet.Note, error) {
		return []byte(graph.Mermaid(l)), nil, nil
	},
}

// again is a request for the same network by whoever puts it: a start that has
// passed is none, which means at once.
func again(r vnet.Request, now time.Time) vnet.Request {
	r.Tenant = ""
	if !r.Start.After(now) {
		r.Start, r.Before = time.Time{}, time.Time{}
	}
	return r
}

func (a *app) get() *cobra.Command {
	var t translation
	var language string
	names := slices.Sorted(maps.Keys(languages))
	c := &cobra.Command{
		Use:   "get NAME",
		Short: "Write the request of a network, or draw the network",
		Long: `Write the request of a network as YAML, VXDL or a topology of containerlab
(clab), draw the network with the hosts it is mapped to (dot, mermaid), or list
its nodes for Ansible (ansible), which tools/ansible/sublet.py connects to them:
groups are nodes, routers and what the label ansible-group says. The
request is that of whoever puts it, and begins at once if its start has passed.
Where a language cannot say all of it, what would be lost is told on standard error and
nothing is written (exit code 1), unless --lossy asks for the rest. With clab and -w
FILE, files of nodes are written beside it, into a directory of its name that ends with
.files.`,
		Example:           "  sublet get hello > hello.yaml\n  sublet get hello -o clab --lossy -w hello.clab.yml\n  sublet get hello -o dot | dot -Tsvg > hello.svg",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			format, known := languages[language]
			if !known {
				return badInput{fmt.Errorf("--output %q: choose one of %s", language, strings.Join(names, ", "))}
			}
			_, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			text, notes, err := format(l, &t)
			if err != nil {
				return err
			}
			return a.translated(t, args[0], text, notes)
		},
	}
	c.Flags().StringVarP(&language, "output", "o", "yaml", "language to write: "+strings.Join(names, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	t.flags(c)
	return c
}
