package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/slice"
	"sublet/openflow/text"
	"sublet/vnet"
	"sublet/vnet/file"
)

// The form of a file of slices (docs/openflow.md).
type (
	sharedSwitch struct {
		Switch string      `yaml:"switch,omitempty"`
		Slices []sliceForm `yaml:"slices"`
	}
	sliceForm struct {
		Name       string   `yaml:"name"`
		Controller []string `yaml:"controller"`
		Default    bool     `yaml:"default,omitempty"`
		Ports      []int    `yaml:"ports,omitempty"`
		Match      string   `yaml:"match,omitempty"`
		Tables     *int     `yaml:"tables,omitempty"`
		Entries    *int     `yaml:"entries,omitempty"`
		Groups     *int     `yaml:"groups,omitempty"`
		Meters     *int     `yaml:"meters,omitempty"`
		Rate       string   `yaml:"rate,omitempty"`
	}
)

// What a slice has of what it does not state: as leased switches.
const (
	sliceTables  = 8
	sliceEntries = 10000
	sliceNumbers = 256 // groups, and meters
)

func (a *app) openflowSlice() *cobra.Command {
	var keep string
	var shown tlsFlags
	c := &cobra.Command{
		Use: "slice FILE", Short: "Share an OpenFlow switch between several controllers", Args: cobra.ExactArgs(1),
		Long: `Share an OpenFlow 1.3 switch, Sublet's or another, between several controllers, in
the foreground: each has a slice of it, by ports or by fields of packets, sees only
that, and believes to be alone. FILE states the switch and its slices:

  switch: tcp:192.0.2.1:6653         # or ptcp:6653, where it connects to
  slices:
    - {name: alice, controller: [tcp:192.0.2.11:6653], ports: [1, 2]}
    - {name: bob, controller: [tcp:192.0.2.12:6653], ports: [3, 4], match: "dl_vlan=10"}
    - {name: rest, controller: [tcp:192.0.2.13:6653], default: true}

The switch is emptied first. With --keep DIRECTORY slices have what they had when the
program ended, however it ended. The default slice may use port NORMAL, so its
controller can be a Sublet server. The switch and controllers are reached over TLS where
ssl and pssl stand for tcp and ptcp; all of them are shown --cert. docs/openflow.md explains it.`,
		Example: "  sublet openflow slice slices.yaml\n  sublet openflow slice slices.yaml --keep /var/lib/sublet/slices",
		RunE: func(c *cobra.Command, args []string) error {
			config, err := readSlices(args[0])
			if err != nil {
				return badInput{err}
			}
			if config.Switch.Secure || slices.ContainsFunc(config.Slices, func(s slice.Slice) bool { return anySecure(s.Controllers) }) {
				if config.TLS, err = shown.config(); err != nil {
					return badInput{err}
				}
			}
			config.Log = func(err error) { fmt.Fprintf(a.err, "sublet: %v\n", err) }
			if keep != "" {
				files, err := openSliceFiles(keep, config.Log)
				if err != nil {
					return badInput{fmt.Errorf("--keep: %w", err)}
				}
				defer files.Close()
				config.Memory = files
			}
			p, err := slice.New(config)
			if err != nil {
				return badInput{fmt.Errorf("%s: %w", args[0], err)}
			}
			fmt.Fprintf(a.err, "sublet: %d slices of the switch at %s\n", len(config.Slices), config.Switch)
			return p.Run(c.Context())
		},
	}
	shown.define(c.Flags())
	c.Flags().StringVar(&keep, "keep", "", "directory with what the next start needs to leave slices what they have")
	return c
}

// openSliceFiles opens what slices know in a directory, which is made if it is not there.
func openSliceFiles(dir string, log func(error)) (*slice.Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return slice.OpenFiles(dir, log)
}

// readSlices reads a file of slices of a switch that is elsewhere.
func readSlices(name string) (slice.Config, error) {
	return readSlicesOf(name, func(c *slice.Config, of string) (err error) {
		if c.Switch, err = channel.ParseTarget(of); err != nil {
			return fieldProblem("switch", fmt.Errorf("%q: write tcp:HOST:PORT, or ptcp:PORT where it connects to; over TLS ssl and pssl", of))
		}
		return nil
	})
}

// readOwnSlices reads a file of slices of the switch that runs here.
func readOwnSlices(name string) ([]slice.Slice, error) {
	c, err := readSlicesOf(name, func(c *slice.Config, of string) error {
		if i := slices.IndexFunc(c.Slices, func(s slice.Slice) bool { return s.Rate != 0 }); i >= 0 {
			return fieldProblem(fmt.Sprintf("slices[%d]", i), errors.New("rate: is for switches that are elsewhere (sublet openflow slice): leave it out"))
		}
		if of != "" {
			return fieldProblem("switch", errors.New("the slices are of the switch that reads this: leave it out"))
		}
		return nil
	})
	return c.Slices, err
}

func anySecure(list []channel.Target) bool {
	return slices.ContainsFunc(list, func(t channel.Target) bool { return t.Secure })
}

// readSlicesOf reads a file of slices; check is told of which switch they are.
func readSlicesOf(name string, check func(c *slice.Config, of string) error) (c slice.Config, err error) {
	raw, err := readBelow(name)
	if err != nil {
		return c, err
	}
	var form sharedSwitch
	err = file.Decode(name, raw, &form, func() error {
		for i := range form.Slices {
			s, err := form.Slices[i].slice()
			if err != nil {
				return fieldProblem(fmt.Sprintf("slices[%d]", i), err)
			}
			c.Slices = append(c.Slices, s)
		}
		return check(&c, form.Switch)
	})
	return c, err
}

func (f *sliceForm) slice() (s slice.Slice, err error) {
	s = slice.Slice{Name: f.Name, Default: f.Default, Tables: or(f.Tables, sliceTables), Entries: or(f.Entries, sliceEntries), Groups: or(f.Groups, sliceNumbers), Meters: or(f.Meters, sliceNumbers)}
	if err := vnet.CheckName(f.Name); err != nil {
		return s, err
	}
	for _, text := range f.Controller {
		t, err := channel.ParseTarget(text)
		if err != nil {
			return s, err
		}
		s.Controllers = append(s.Controllers, t)
	}
	for _, port := range f.Ports {
		if port < 1 || port > int(of13.PortMax) {
			return s, fmt.Errorf("ports: %d is not the number of a port", port)
		}
		s.Ports = append(s.Ports, uint32(port))
	}
	if f.Rate != "" {
		rate, err := vnet.ParseRate(f.Rate)
		if err != nil {
			return s, fmt.Errorf("rate: %w", err)
		}
		s.Rate = int64(rate)
	}
	if s.Match, err = text.Masked(f.Match); err != nil {
		return s, fmt.Errorf("match: %w", err)
	}
	return s, nil
}

// or is what is stated, else something else.
func or(stated *int, other int) int {
	if stated != nil {
		return *stated
	}
	return other
}
