package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sublet/vnet/file"
	"sublet/vnet/graph"
	"sublet/vnet/vxdl"
)

func (a *app) convert() *cobra.Command {
	var t translation
	var to string
	var strict bool
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert a request from VXDL to the native form, or back",
		Long: `Convert a request. Where the other language cannot say all of it, what would be
lost is told on standard error and nothing is written (exit code 1), unless
--lossy asks for the rest.`,
		Example: "  sublet convert request.xml\n  sublet convert request.yaml -w request.xml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			if to == "" {
				to = map[bool]string{true: "yaml", false: "vxdl"}[isXML(text)]
			}
			converted, notes, err := convertText(args[0], text, to, strict)
			if err != nil {
				return err
			}
			return a.translated(t, args[0], converted, notes)
		},
	}
	t.flags(c)
	c.Flags().StringVar(&to, "to", "", "yaml or vxdl (default: the other one)")
	_ = c.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{"yaml", "vxdl"}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().BoolVar(&strict, "strict", false, "refuse VXDL with unknown elements")
	return c
}

// convertText reads a request in either language and writes it in one of them.
func convertText(name string, text []byte, to string, strict bool) ([]byte, []vxdl.Note, error) {
	if to != "yaml" && to != "vxdl" {
		return nil, nil, badInput{fmt.Errorf("--to %q: choose yaml or vxdl", to)}
	}
	req, notes, err := parseText(name, text, strict)
	if err != nil {
		return nil, notes, err
	}
	if to == "yaml" {
		converted, err := file.FormatRequest(req)
		return converted, notes, err
	}
	converted, more := vxdl.Format(req)
	return converted, append(notes, more...), nil
}

// countLost counts what a conversion drops.
func countLost(notes []vxdl.Note) (n int) {
	for _, note := range notes {
		if note.Lost {
			n++
		}
	}
	return n
}

func (a *app) graph() *cobra.Command {
	var form string
	c := &cobra.Command{
		Use:               "graph NAME",
		Short:             "Draw a network and its mapping, as DOT or Mermaid",
		Example:           "  sublet graph hello | dot -Tsvg > hello.svg\n  sublet graph hello --form mermaid",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			draw := graph.DOT
			switch form {
			case "dot":
			case "mermaid":
				draw = graph.Mermaid
			default:
				return badInput{fmt.Errorf("--form %q: choose dot or mermaid", form)}
			}
			_, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.out, draw(l))
			return err
		},
	}
	c.Flags().StringVar(&form, "form", "dot", "dot or mermaid")
	_ = c.RegisterFlagCompletionFunc("form", cobra.FixedCompletions([]string{"dot", "mermaid"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}
