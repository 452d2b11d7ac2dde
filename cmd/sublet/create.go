package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sublet/vnet"
	"sublet/vnet/file"
	"sublet/vnet/topology"
)

func (a *app) createCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "create",
		Short:   "Write a substrate to a file",
		Example: "  sublet create substrate fat-tree:4 --to dc.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.createSubstrate())
	return c
}

// substrateFlags are the sizes that replace a substrate's own.
type substrateFlags struct{ capacity, cpu, memory, latency, to string }

func (a *app) createSubstrate() *cobra.Command {
	var f substrateFlags
	c := &cobra.Command{
		Use:   "substrate FILE|NAME",
		Short: "Write a substrate in YAML, made by name or out of another language",
		Long: `Write a substrate in YAML. It is made of ` + substrateForms + `.
Flags replace what all its hosts and links have.`,
		Example: "  sublet create substrate fat-tree:4 --capacity 10Gbit --to dc.yaml\n  sublet create substrate Geant2012.graphml",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: completeSubstrate,
		RunE: func(_ *cobra.Command, args []string) error {
			sizes, err := f.sizes()
			if err != nil {
				return err
			}
			sub, err := a.readSubstrate(args[0])
			if err != nil {
				return err
			}
			sizes.Apply(&sub)
			return a.writeSubstrate(sub, f.to)
		},
	}
	c.Flags().StringVar(&f.capacity, "capacity", "", "capacity of every link per direction, such as 10Gbit")
	c.Flags().StringVar(&f.latency, "latency", "", "latency of every link one way, such as 50us")
	c.Flags().StringVar(&f.cpu, "cpu", "", "cores of every host")
	c.Flags().StringVar(&f.memory, "memory", "", "memory of every host, such as 64GiB")
	c.Flags().StringVar(&f.to, "to", "-", "write to this file")
	return c
}

// sizes reads the flags.
func (f substrateFlags) sizes() (s topology.Sizes, err error) {
	set := func(flag, text string, parse func() error) {
		if text == "" || err != nil {
			return
		}
		if e := parse(); e != nil {
			err = badInput{fmt.Errorf("--%s: %w", flag, e)}
		}
	}
	set("capacity", f.capacity, func() (e error) { s.Capacity, e = vnet.ParseRate(f.capacity); return })
	set("cpu", f.cpu, func() (e error) { s.CPU, e = vnet.ParseCPU(f.cpu); return })
	set("memory", f.memory, func() (e error) { s.Memory, e = vnet.ParseBytes(f.memory); return })
	set("latency", f.latency, func() (e error) { s.Latency, e = vnet.ParseDuration(f.latency); return })
	return s, err
}

func (a *app) writeSubstrate(sub vnet.Substrate, to string) error {
	if err := sub.Check(); err != nil {
		return err
	}
	text, err := file.FormatSubstrate(sub)
	if err != nil {
		return err
	}
	if to == "-" {
		_, err := a.out.Write(text)
		return err
	}
	return write(to, text)
}
