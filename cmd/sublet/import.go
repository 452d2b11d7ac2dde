package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/vnet"
	"sublet/vnet/clab"
	"sublet/vnet/file"
	"sublet/vnet/mininet"
	"sublet/vnet/rspec"
	"sublet/vnet/topology"
	"sublet/vnet/vxdl"
)

// translation is how a request is translated, and where to.
type translation struct {
	out   string
	lossy bool
	files []vnet.File // to write as well, by their paths from the directory of out
}

// beside is the directory for files beside what is written, as seen from there; "":
// there is none.
func (t *translation) beside() string {
	if t.out == "-" {
		return ""
	}
	name, _, _ := strings.Cut(filepath.Base(t.out), ".")
	return cmp.Or(name, "topology") + ".files"
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
	return errors.Join(t.writeFiles(), write(t.out, text))
}

// writeFiles writes what stands beside a text. No link leads out of its directory
// (os.Root).
func (t *translation) writeFiles() error {
	if len(t.files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(t.out))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range t.files {
		mode := os.FileMode(f.Permissions())
		err := root.MkdirAll(path.Dir(f.Path), 0o755)
		if err == nil {
			err = root.WriteFile(f.Path, []byte(f.Text), mode)
		}
		if err == nil {
			err = root.Chmod(f.Path, mode) // whatever the umask, or the file before it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// importer reads a text in the language of another program as a request.
type importer func(name string, text []byte) (vnet.Request, []vnet.Note, error)

// importerOf knows other programs' languages by what a text looks like; nil:
// it is none of them.
func importerOf(text []byte, opt clab.Options) importer {
	switch {
	case topology.IsGraphML(text):
		return topology.ParseGraphMLRequest
	case rspec.Is(text):
		return rspec.Parse
	case isXML(text) || !bytes.Contains(text, []byte("topology")) && !bytes.Contains(text, []byte("mininet")):
		return nil // without reading all of it
	}
	root, err := file.Tree("", text)
	switch {
	case err != nil:
	case file.IsContainerlab(root):
		return containerlab(opt)
	case mininet.Is(root):
		return mininet.Parse
	}
	return nil
}

func (a *app) importing() *cobra.Command {
	var t translation
	scale := 1.0
	var opt clab.Options
	var exits map[string]string
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a request of what another program describes a network with",
		Long: `Make a request of what another program describes a network with:

  containerlab  nodes of kind linux become nodes, those with several links routers,
                with their images (--no-images: with the files of their host;
                those of FRR's image become routers with its frr.conf),
                variables (env, env-files), commands (cmd, exec), binds (copied)
                and interfaces; bridges become switches, other kinds routers, with
                their images if they state some and startup-config where it is
                known where they look for it (frr, crpd, ceos); addresses that exec
                sets are those of the links; links are best effort; links to the
                host (macvlan, host, mgmt-net) lead to an exit (--access eth0=EXIT:RATE)
  GraphML       as of the Internet Topology Zoo: nodes become routers, links have
                the rates that their speeds or labels state ("155 Mbps", "OC-192c"),
                of a range ("34-155 Mbps") at least and at most
  GENI RSpec    version 3, requests and manifests: links have their capacities as
                rates, links of more than two interfaces become switches
  Mininet       as tools/mininet/export.py writes a topology of Python: hosts become
                nodes, switches switches, bw is a rate, delay, jitter and loss
                are impairments
  VXDL          as sublet convert does; a vAccessPoint becomes a switch that leads
                to an exit by --access ID=EXIT:RATE or a tag sublet:access

Names are made valid and unique, and what they were is told. What a request
cannot hold is told on standard error and nothing is written (exit code 1),
unless --lossy asks for the rest. With --scale all rates are multiplied.

sublet up FILE does the same at once where nothing would be lost.`,
		Example: "  sublet import lab.clab.yml\n  sublet import lab.clab.yml --lossy -w request.yaml && sublet up request.yaml\n  sublet import Abilene.graphml --scale 0.01 -w abilene.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			if opt.Access, err = exitsOf(exits); err != nil {
				return err
			}
			req, notes, err := imported(args[0], text, opt)
			if err != nil {
				return err
			}
			if err := scaleRates(&req, scale); err != nil {
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
	c.Flags().Float64Var(&scale, "scale", 1, "multiply all rates, such as 0.01 for a network that is tried in a lab")
	c.Flags().StringToStringVar(&exits, "access", nil, "exit that an interface of the host, a node of kind host or a bridge stands for, and the rate of links there, such as eth0=campus:50Mbit (containerlab), or that a vAccessPoint leads to (VXDL)")
	c.Flags().StringToStringVar(&opt.Set, "set", nil, "value of a variable of the topology, such as VERSION=12 (containerlab)")
	c.Flags().BoolVar(&opt.NoImages, "no-images", false, "let nodes have the files of their host; nodes of FRR's image become routers that are told their /etc/frr/frr.conf (containerlab)")
	return c
}

// imported reads a text in whatever language of another program it is.
func imported(name string, text []byte, opt clab.Options) (vnet.Request, []vnet.Note, error) {
	if err := needsExport(name, text); err != nil {
		return vnet.Request{}, nil, err
	}
	read := importerOf(text, opt)
	if read == nil && isXML(text) {
		read = leading(opt.Access)
	} else if read == nil {
		read = containerlab(opt) // which says what it is not
	}
	return read(name, text)
}

// needsExport says of a program for Mininet, and of what MiniEdit saves, by which
// way it comes here.
func needsExport(name string, text []byte) error {
	problem := ""
	switch {
	case strings.HasSuffix(name, ".py") || bytes.Contains(text, []byte("from mininet.")):
		problem = "this is a program: write its topology with `tools/mininet/export.py " + filepath.Base(name) + " -o topology.json`, and import that"
	case bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && bytes.Contains(text, []byte(`"controllers"`)) && bytes.Contains(text, []byte(`"startCLI"`)):
		problem = "this is what MiniEdit saves: let it export a script (Level 2), write its topology with tools/mininet/export.py --run, and import that"
	default:
		return nil
	}
	return &vnet.InputError{File: name, Line: 1, Column: 1, Problem: problem}
}

// scaleRates multiplies the rates of a request's links.
func scaleRates(r *vnet.Request, by float64) error {
	if !(by > 0 && by <= 1e6) {
		return badInput{fmt.Errorf("--scale %g: state a number above 0, up to 1000000", by)}
	}
	if by == 1 {
		return nil
	}
	for i := range r.Links {
		for d := range r.Links[i].Bandwidth {
			scaleBandwidth(&r.Links[i].Bandwidth[d], by)
		}
	}
	for _, s := range r.Stages {
		for name, both := range s.Links {
			for d := range both {
				scaleBandwidth(&both[d], by)
			}
			s.Links[name] = both
		}
		for i := range s.Add.Links {
			for d := range s.Add.Links[i].Bandwidth {
				scaleBandwidth(&s.Add.Links[i].Bandwidth[d], by)
			}
		}
	}
	return r.Check()
}

// scaleBandwidth multiplies what is stated of a direction, within what rates
// may be.
func scaleBandwidth(b *vnet.Bandwidth, by float64) {
	for _, rate := range []*vnet.Rate{&b.Min, &b.Max} {
		if *rate != 0 && *rate != vnet.Unbounded {
			scaled := math.Round(float64(*rate) * by)
			*rate = vnet.Rate(min(max(scaled, float64(vnet.MinRate)), float64(vnet.MaxRate)))
		}
	}
}

// leading reads VXDL whose access points lead to exits.
func leading(exits map[string]clab.Exit) importer {
	return func(name string, text []byte) (vnet.Request, []vnet.Note, error) {
		r, notes, err := vxdl.Parse(name, text, false)
		for _, point := range slices.Sorted(maps.Keys(exits)) {
			if err != nil {
				break
			}
			err = vxdl.Lead(&r, point, exits[point].Name, exits[point].Rate)
		}
		return r, notes, err
	}
}
