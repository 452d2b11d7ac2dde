package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sublet/vnet/file"
	"sublet/vnet/graph"
	"sublet/vnet/vxdl"
)

func (a *app) convert() *cobra.Command {
	var out, to string
	var strict bool
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert a request from VXDL to the native form, or back",
		Long: `Convert a request. What the other language cannot say is told on standard
error, never dropped in silence.`,
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
			converted, err := a.convertText(args[0], text, to, strict)
			if err != nil {
				return err
			}
			if out == "-" {
				_, err = a.out.Write(converted)
				return err
			}
			return write(out, converted)
		},
	}
	c.Flags().StringVarP(&out, "write", "w", "-", "file to write, - for standard output")
	c.Flags().StringVar(&to, "to", "", "yaml or vxdl (default: the other one)")
	_ = c.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{"yaml", "vxdl"}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().BoolVar(&strict, "strict", false, "refuse VXDL with unknown elements")
	return c
}

func (a *app) convertText(name string, text []byte, to string, strict bool) ([]byte, error) {
	req, err := a.parseRequest(name, text, strict)
	if err != nil {
		return nil, err
	}
	switch to {
	case "yaml":
		return file.FormatRequest(req)
	case "vxdl":
		converted, notes := vxdl.Format(req)
		a.tell(notes)
		return converted, nil
	}
	return nil, badInput{fmt.Errorf("--to %q: choose yaml or vxdl", to)}
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
