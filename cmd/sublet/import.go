package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sublet/vnet"
	"sublet/vnet/clab"
	"sublet/vnet/file"
	"sublet/vnet/vxdl"
)

// translation is how a request is translated, and where to.
type translation struct {
	out   string
	lossy bool
}

func (t *translation) flags(c *cobra.Command) {
	c.Flags().StringVarP(&t.out, "write", "w", "-", "file to write, - for standard output")
	c.Flags().BoolVar(&t.lossy, "lossy", false, "write what the other language can say, and leave out the rest")
}

// translated tells what was lost and writes the rest, if that is wanted.
func (a *app) translated(t translation, name string, text []byte, notes []vnet.Note) error {
	a.tell(notes)
	if lost := countLost(notes); lost > 0 && !t.lossy {
		return fmt.Errorf("%s: nothing is written, since %s would be lost: change the request, or write the rest with --lossy", name, number(lost, "thing"))
	}
	if t.out == "-" {
		_, err := a.out.Write(text)
		return err
	}
	return write(t.out, text)
}

func (a *app) importing() *cobra.Command {
	var t translation
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a request of a topology of containerlab, or of VXDL",
		Long: `Make a request of a topology of containerlab: nodes of kind linux become nodes,
bridges switches, other kinds routers; links are best effort. What a request
cannot hold (images, files, programs, links to the host) is told on standard
error and nothing is written (exit code 1), unless --lossy asks for the rest.`,
		Example: "  sublet import lab.clab.yml\n  sublet import lab.clab.yml --lossy -w request.yaml && sublet up request.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			read := clab.Parse
			if isXML(text) {
				read = func(name string, text []byte) (vnet.Request, []vnet.Note, error) {
					return vxdl.Parse(name, text, false)
				}
			}
			req, notes, err := read(args[0], text)
			if err != nil {
				return err
			}
			made, err := file.FormatRequest(req)
			if err != nil {
				return err
			}
			return a.translated(t, args[0], made, notes)
		},
	}
	t.flags(c)
	return c
}
